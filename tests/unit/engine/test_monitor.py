"""What is counted of jobs: by the route their answers came by, however they end."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.breaker import BreakerRules
from engine.job import Run
from engine.monitor import MILLISECONDS, SLOW_FIRST_DRAFT_MS, Counts, Course, Monitor
from engine.protocol.messages import Done, Route, Stats
from engine.rollout import Rollout
from tests.fakes.clock import Clock
from tests.fakes.driving import result_of

STATS = Stats("diffusion", "why", "end", 4, 12, 100, 60, 1.0, 90.0, 250.0, drafts=(("masks", 10, 4), ("ngram", 6, 4)))


def run(course: Course, stats: Stats = STATS, route: Route = "diffusion", fault: Exception | None = None) -> Run:
    yield None
    course.route = route
    yield None
    if fault is not None:
        raise fault
    return Done("a", "text", stats)


def test_a_job_is_counted_by_the_route_of_its_answer() -> None:
    monitor = Monitor()
    for stats in (STATS, replace(STATS, route="causal", cached_tokens=0), replace(STATS, passes=0, drafts=())):
        assert result_of(monitor.follow("a", partial(run, stats=stats))).stats is stats
    causal, diffusion = monitor.monitored.routes
    assert (causal.route, causal.done, causal.cache_hits, causal.cached_tokens) == ("causal", 1, 0, 0)
    assert (diffusion.route, diffusion.done, diffusion.cache_hits) == ("diffusion", 2, 2)
    assert (diffusion.prompt_tokens, diffusion.cached_tokens) == (200, 120)
    assert (diffusion.first_draft_ms.total, diffusion.total_ms.total) == (180.0, 500.0)
    # Without a pass there is no pace, without a draft no share kept.
    assert (diffusion.tokens_per_pass.total, sum(diffusion.tokens_per_pass.counts)) == (3.0, 1)
    assert (diffusion.acceptance.total, sum(diffusion.acceptance.counts)) == (0.5, 1)
    assert (diffusion.passes.total, monitor.monitored.breaker) == (4.0, None)


def test_a_cancel_and_a_failure_count_for_the_route_they_met() -> None:
    monitor = Monitor()
    for steps in (0, 1, 2):
        job = monitor.follow("a", run)
        for _ in range(steps):
            next(job)
        job.close()
    with pytest.raises(OSError, match="gone"):
        result_of(monitor.follow("b", lambda course: run(course, fault=OSError("gone"))))
    (diffusion,) = monitor.monitored.routes
    # Nobody can say of a job that was closed before its second step which way it would have gone.
    assert (diffusion.done, diffusion.cancelled, diffusion.failed) == (0, 1, 1)


def test_gates_count_for_the_route_that_was_refused() -> None:
    def refused(course: Course) -> Run:
        yield None
        course.refuse("diffusion", ("parse", "repetition"))
        course.refuse("causal", ("parse",))
        course.fallbacks += 1
        return Done("a", "text", replace(STATS, route="causal"))

    monitor = Monitor()
    result_of(monitor.follow("a", refused))
    causal, diffusion = monitor.monitored.routes
    assert (causal.done, causal.gate_failures, causal.fallbacks) == (1, (("parse", 1),), 0)
    assert (diffusion.done, diffusion.gate_failures, diffusion.fallbacks) == (0, (("repetition", 1), ("parse", 1)), 1)


def test_the_breaker_learns_from_how_jobs_went() -> None:
    clock = Clock()
    monitor = Monitor(Rollout(clock, rules=BreakerRules(failures=2, first_wait_s=10.0)))

    def went(course: Course, *, well: bool | None) -> Run:
        if well is not None:
            course.judge(went_well=well)
        yield from ()
        return Done("a", "text" if course.permit.is_granted else "held back", STATS)

    def text(well: bool | None = None) -> str:
        return result_of(monitor.follow("a", lambda course: went(course, well=well))).text

    assert [text(False), text(None), text(False)] == ["text"] * 3
    breaker = monitor.monitored.breaker
    assert breaker is not None
    assert (breaker.state, breaker.retry_in_s) == ("open", 10.0)
    assert monitor.monitored.after(4.0).breaker == replace(breaker, retry_in_s=6.0)
    assert text() == "held back"
    clock.now = 10.0
    assert [text(True), text()] == ["text"] * 2
    assert monitor.monitored.diffusion_share == 100.0


def test_one_bad_text_of_a_job_outweighs_the_others() -> None:
    course = Course()
    assert course.went_well is None
    for well, then in ((True, True), (False, False), (True, False)):
        course.judge(went_well=well)
        assert course.went_well is then


def test_slow_first_drafts_are_counted_and_warned_of_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor()
    with caplog.at_level(logging.WARNING):
        for ms in [SLOW_FIRST_DRAFT_MS, *[SLOW_FIRST_DRAFT_MS + 1] * 25]:
            result_of(monitor.follow("a", partial(run, stats=replace(STATS, ms_first_draft=ms))))
    assert monitor.monitored.routes[0].slow_first_drafts == 25
    assert [record.args[-1] for record in caplog.records if isinstance(record.args, tuple)] == [1, 10]


@given(st.lists(st.floats(0, 60_000) | st.just(math.nan), max_size=40))
def test_a_histogram_holds_every_number_once(values: list[float]) -> None:
    counts = Counts(MILLISECONDS)
    for value in values:
        counts.add(value)
    told = counts.report()
    numbers = [value for value in values if not math.isnan(value)]
    assert sum(told.counts) == len(numbers)
    assert told.total == pytest.approx(sum(numbers))
    reached = 0
    for bound, count in zip(told.bounds, told.counts, strict=False):
        reached += count
        assert reached == sum(value <= bound for value in numbers)
