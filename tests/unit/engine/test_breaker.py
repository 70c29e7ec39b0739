"""The breaker of the diffusion route: every state with everything that can happen in it, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.breaker import Breaker, BreakerRules

RULES = BreakerRules(failures=3, first_wait_s=10.0, longest_wait_s=35.0)
CLOSED = Breaker(RULES)
OPEN = Breaker(RULES, "open", failures=3, openings=1, wait_s=10.0, retry_at=110.0)
HALF_OPEN = replace(OPEN, state="half_open")


@pytest.mark.parametrize(
    ("before", "now", "after", "is_let_through"),
    [
        (CLOSED, 0.0, CLOSED, True),
        (replace(CLOSED, failures=2), 0.0, replace(CLOSED, failures=2), True),
        (OPEN, 109.9, OPEN, False),
        (OPEN, 110.0, HALF_OPEN, True),
        (HALF_OPEN, 500.0, HALF_OPEN, False),
    ],
)
def test_who_is_let_through(before: Breaker, now: float, after: Breaker, is_let_through: bool) -> None:
    assert before.asked(now) == (after, is_let_through)


@pytest.mark.parametrize(
    ("before", "is_trial", "after"),
    [
        (CLOSED, False, replace(CLOSED, failures=1)),
        (replace(CLOSED, failures=1), False, replace(CLOSED, failures=2)),
        (
            replace(CLOSED, failures=2),
            False,
            replace(CLOSED, state="open", failures=3, openings=1, wait_s=10.0, retry_at=110.0),
        ),
        # A job from before the opening tells nothing new.
        (OPEN, False, OPEN),
        (HALF_OPEN, False, HALF_OPEN),
        (HALF_OPEN, True, replace(OPEN, failures=4, openings=2, wait_s=20.0, retry_at=120.0)),
        (replace(HALF_OPEN, wait_s=20.0), True, replace(OPEN, failures=4, openings=2, wait_s=35.0, retry_at=135.0)),
    ],
)
def test_a_failure(before: Breaker, is_trial: bool, after: Breaker) -> None:
    assert before.failed(100.0, is_trial=is_trial) == after


@pytest.mark.parametrize(
    ("before", "is_trial", "after"),
    [
        (replace(CLOSED, failures=2), False, CLOSED),
        (OPEN, False, OPEN),
        (HALF_OPEN, False, HALF_OPEN),
        (HALF_OPEN, True, replace(CLOSED, openings=1, retry_at=110.0)),
    ],
)
def test_a_success(before: Breaker, is_trial: bool, after: Breaker) -> None:
    assert before.succeeded(is_trial=is_trial) == after


@pytest.mark.parametrize(
    ("before", "is_trial", "after"),
    [
        (replace(CLOSED, failures=2), False, replace(CLOSED, failures=2)),
        (HALF_OPEN, False, HALF_OPEN),
        (HALF_OPEN, True, replace(OPEN, retry_at=200.0)),
    ],
)
def test_a_job_that_tells_nothing(before: Breaker, is_trial: bool, after: Breaker) -> None:
    assert before.withdrawn(200.0, is_trial=is_trial) == after


def test_it_is_told_with_the_time_that_is_left() -> None:
    assert OPEN.report(104.0).retry_in_s == 6.0
    assert OPEN.report(200.0).retry_in_s == 0.0
    assert (HALF_OPEN.report(0.0).state, HALF_OPEN.report(0.0).retry_in_s) == ("half_open", 0.0)


@given(st.lists(st.tuples(st.sampled_from(["ok", "bad", "none"]), st.floats(0.0, 60.0)), max_size=60))
def test_one_job_at_a_time_tries_an_open_route_and_a_good_one_closes_it(events: list[tuple[str, float]]) -> None:
    breaker, now = CLOSED, 0.0
    for outcome, passed in events:
        now += passed
        before = breaker.state
        breaker, may = breaker.asked(now)
        if not may:
            assert breaker.state == "open"
            assert breaker.report(now).retry_in_s > 0.0
            continue
        is_trial = before == "open"
        assert breaker.asked(now)[1] is not is_trial
        if outcome == "ok":
            breaker = breaker.succeeded(is_trial=is_trial)
            assert (breaker.state, breaker.failures) == ("closed", 0)
        elif outcome == "bad":
            breaker = breaker.failed(now, is_trial=is_trial)
            assert breaker.state == ("open" if is_trial or breaker.failures >= RULES.failures else "closed")
            assert breaker.wait_s <= RULES.longest_wait_s
        else:
            breaker = breaker.withdrawn(now, is_trial=is_trial)
            assert breaker.asked(now)[1]
