"""Schedules over the steps, and the rules that end a canvas and a text."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.halting import StableAndConfident, text_stop, up_to_end
from engine.diffusion.sampling import SamplingConfig, Schedule
from engine.diffusion.schedules import due, share_settled, temperatures
from engine.diffusion.stopping import Limits
from engine.tokenizer import ByteTokenizer

SCHEDULES: tuple[Schedule, ...] = ("linear", "cosine", "adaptive")


def test_the_temperature_falls_linearly_and_never_quite_ends() -> None:
    assert temperatures(0.8, 0.4, 4) == pytest.approx((0.8, 0.7, 0.6, 0.5))
    assert temperatures(0.0, 0.0, 2) == (0.0, 0.0)
    assert len(temperatures(1.0, 0.5, 48)) == 48


@given(st.sampled_from(SCHEDULES), st.integers(1, 40), st.integers(1, 60))
def test_following_what_is_due_settles_everything_in_time(schedule: Schedule, steps: int, places: int) -> None:
    settled = 0
    for step in range(steps):
        wanted = due(schedule, step, steps, places, settled)
        assert (wanted >= 1) == (settled < places)
        settled += wanted
        assert settled <= places
    assert settled == places


@given(st.sampled_from(SCHEDULES), st.integers(1, 40))
def test_the_share_settled_rises_from_nothing_to_all(schedule: Schedule, steps: int) -> None:
    shares = [share_settled(schedule, step, steps) for step in range(steps + 1)]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert shares == sorted(shares)


def test_a_cosine_settles_few_places_first() -> None:
    assert share_settled("cosine", 1, 4) == pytest.approx(1 - math.cos(math.pi / 8))
    assert share_settled("cosine", 2, 4) < share_settled("linear", 2, 4)


def stops(stable_steps: int, canvases: list[int], entropy: float = 0.0) -> list[bool]:
    rule = StableAndConfident(stable_steps, 0.005)
    everywhere = torch.tensor([True])
    return [rule.update(torch.tensor([token]), torch.tensor([entropy]), everywhere) for token in canvases]


def test_stability_is_counted_in_earlier_canvases() -> None:
    assert stops(0, [1, 2]) == [True, True]
    assert stops(1, [1, 1, 2, 3, 3]) == [False, True, False, False, True]
    assert stops(2, [1, 1, 1, 2, 2, 2]) == [False, False, True, False, False, True]


@pytest.mark.parametrize("entropy", [0.005, 1.0, math.nan])
def test_a_doubtful_canvas_never_stops(entropy: float) -> None:
    assert not any(stops(1, [1, 1, 1], entropy))


def test_the_rule_can_be_off_and_forgets() -> None:
    everywhere, still, sure = torch.tensor([True]), torch.tensor([1]), torch.tensor([0.0])
    off = StableAndConfident(0, 0.0)
    assert not off.update(still, sure, everywhere)
    rule = StableAndConfident(1, 0.005)
    assert [rule.update(still, sure, everywhere) for _ in range(2)] == [False, True]
    rule.forget()
    assert not rule.update(still, sure, everywhere)


def test_only_counted_places_are_averaged() -> None:
    rule = StableAndConfident(0, 0.5)
    ids, entropy = torch.tensor([1, 2, 3, 4]), torch.tensor([0.0, 0.0, 0.0, 0.9])
    assert rule.update(ids, entropy, torch.tensor([True] * 4))
    assert not rule.update(ids, entropy, torch.tensor([False, False, False, True]))
    assert not rule.update(ids, entropy, torch.tensor([False] * 4))


def test_everything_right_of_the_first_end_id_is_dropped() -> None:
    assert up_to_end([1, 2, 9, 3, 8], frozenset({8, 9})) == ((1, 2), True)
    assert up_to_end([1, 2], frozenset({9})) == ((1, 2), False)
    assert up_to_end([], frozenset({9})) == ((), False)


@pytest.mark.parametrize(
    ("limits", "text", "expected"),
    [
        (Limits(9), "abc", (3, None)),
        (Limits(2), "abc", (2, "budget")),
        (Limits(3), "abc", (3, "budget")),
        (Limits(9, 1), "\nab\ncd", (3, "lines")),
        (Limits(9, 3), "\nab\ncd", (6, None)),
        (Limits(9, 0, "``"), "ab\n``c", (3, "end")),
        (Limits(9, 1, "``"), "``ab\nc", (0, "end")),
        (Limits(2, 1), "abc\nd", (2, "budget")),
        (Limits(9, 1), "é\nd", (2, "lines")),
    ],
)
def test_a_text_ends_at_whatever_comes_first(limits: Limits, text: str, expected: tuple[int, str | None]) -> None:
    assert text_stop(list(text.encode()), ByteTokenizer(), limits) == expected


def test_unknown_settings_are_an_error() -> None:
    with pytest.raises(ValueError, match="unknown"):
        SamplingConfig.from_mapping({"stepps": 3})
