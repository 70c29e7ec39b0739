"""No wait when idle, the setting in a burst, more while the engine is outrun, less again when it keeps up."""

from __future__ import annotations

import pytest

from lsp_server.debounce import LONGEST_S, REST_S, Debounce
from tests.fakes.fake_editor import FakeClock

KEY = ("file:///a.py", "automatic")
LEAST_S = 0.075


def test_a_lone_request_waits_not_at_all_and_a_burst_as_long_as_the_setting_says() -> None:
    clock = FakeClock()
    debounce = Debounce(clock)
    assert debounce.pause_s(KEY, LEAST_S) == 0
    clock.advance(LEAST_S / 2)
    assert debounce.pause_s(KEY, LEAST_S) == LEAST_S
    assert debounce.pause_s(("file:///b.py", "automatic"), LEAST_S) == 0
    clock.advance(LEAST_S * 2)
    assert debounce.pause_s(KEY, LEAST_S) == 0


def typed(debounce: Debounce, clock: FakeClock, gap_s: float) -> float:
    clock.advance(gap_s)
    return debounce.pause_s(KEY, LEAST_S)


def test_it_grows_while_keys_outrun_the_engine_until_it_covers_their_gap() -> None:
    clock = FakeClock()
    debounce = Debounce(clock)
    gap_s, pauses = 0.15, []
    for _ in range(8):
        pauses.append(typed(debounce, clock, gap_s))
        if not pauses[-1]:
            debounce.outrun()
    # Each key that asked at once was overtaken by the next, until the wait was longer than the gap between keys.
    assert pauses[:2] == [0, 0]
    assert all(pause > gap_s for pause in pauses[3:])
    assert max(pauses) <= LONGEST_S


def test_it_never_grows_beyond_what_people_stand() -> None:
    clock = FakeClock()
    debounce = Debounce(clock)
    debounce.pause_s(KEY, LEAST_S)
    for _ in range(50):
        debounce.outrun()
    assert debounce.window_s == LONGEST_S
    assert debounce.pause_s(KEY, 2.0) == 2.0


def test_it_shrinks_with_answers_in_time_but_not_below_the_setting() -> None:
    clock = FakeClock()
    debounce = Debounce(clock)
    debounce.pause_s(KEY, LEAST_S)
    for _ in range(4):
        debounce.outrun()
    grown = debounce.window_s
    debounce.kept_up()
    assert debounce.window_s < grown
    for _ in range(20):
        debounce.kept_up()
    assert typed(debounce, clock, LEAST_S / 2) == LEAST_S


def test_a_rest_begins_anew() -> None:
    clock = FakeClock()
    debounce = Debounce(clock)
    debounce.pause_s(KEY, LEAST_S)
    for _ in range(10):
        debounce.outrun()
    clock.advance(REST_S + 1)
    assert debounce.pause_s(KEY, LEAST_S) == 0
    assert debounce.window_s == LEAST_S


@pytest.mark.parametrize("outruns", [0, 5])
def test_a_setting_of_nothing_is_no_wait(outruns: int) -> None:
    clock = FakeClock()
    debounce = Debounce(clock)
    for _ in range(3):
        assert debounce.pause_s(KEY, 0.0) == 0
        for _ in range(outruns):
            debounce.outrun()


def test_a_closed_document_is_forgotten() -> None:
    debounce = Debounce(FakeClock())
    debounce.pause_s(KEY, LEAST_S)
    debounce.forget("file:///other.py")
    assert debounce.pause_s(KEY, LEAST_S) == LEAST_S
    debounce.forget(KEY[0])
    assert debounce.pause_s(KEY, LEAST_S) == 0
