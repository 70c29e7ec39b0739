"""What comes of jobs, counted by route: `Monitor`. Counters and histograms, the time to the first draft above all.

Owns numbers only, and no text. `follow` goes along with a job's run and notes how it ended; the core notes
in the job's `Course` which route it took.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from engine.job import Monitored, Run
from engine.protocol.messages import Gate, Histogram, Route, RouteReport, Stats
from engine.rollout import Permit, Rollout

log = logging.getLogger(__name__)

SLOW_FIRST_DRAFT_MS = 500.0
"""A first draft that takes longer is a warning: whoever waits for it looks elsewhere."""

MILLISECONDS = (10.0, 25.0, 50.0, 100.0, 200.0, 300.0, 500.0, 750.0, 1000.0, 2000.0, 5000.0, 10_000.0, 30_000.0)
PASSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
TOKENS_PER_PASS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(slots=True)
class Course:
    """What a core notes of a job on its way: its `route` now, which gates refused its texts, by the route they came by,
    how often a text was made again, and whether the diffusion route did well by it, None where nothing can be said."""

    permit: Permit = field(default_factory=Permit)
    route: Route | None = None
    refused: list[tuple[Route, Gate]] = field(default_factory=list)
    fallbacks: int = 0
    went_well: bool | None = None

    def refuse(self, route: Route, gates: tuple[Gate, ...]) -> None:
        """Note which gates a text of `route` did not pass."""
        self.refused += [(route, gate) for gate in gates]

    def judge(self, *, went_well: bool) -> None:
        """Note how the diffusion route did by one of the job's texts; one bad text outweighs the others."""
        self.went_well = went_well and self.went_well is not False


class Counts:
    """A histogram as it grows."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        """Count a value. One that is no number is left out."""
        if value == value:  # noqa: PLR0124  # NaN is not
            self._counts[bisect_left(self._bounds, value)] += 1
            self._total += value

    def report(self) -> Histogram:
        """It as clients are told."""
        return Histogram(self._bounds, tuple(self._counts), self._total)


class _RouteCounts:
    def __init__(self, route: Route) -> None:
        self._route = route
        self.cancelled = self.failed = self.fallbacks = 0
        self.gates: dict[Gate, int] = dict.fromkeys(get_args(Gate), 0)
        self._done = self._slow = self._hits = self._prompt_tokens = self._cached_tokens = 0
        self._first_draft, self._total = Counts(MILLISECONDS), Counts(MILLISECONDS)
        self._passes, self._tokens_per_pass, self._acceptance = Counts(PASSES), Counts(TOKENS_PER_PASS), Counts(SHARES)

    def add(self, stats: Stats) -> None:
        self._done += 1
        self._first_draft.add(stats.ms_first_draft)
        self._total.add(stats.ms_total)
        self._passes.add(stats.passes)
        if stats.passes:
            self._tokens_per_pass.add(stats.tokens / stats.passes)
        if offered := sum(offered for _, offered, _ in stats.drafts):
            self._acceptance.add(sum(kept for _, _, kept in stats.drafts) / offered)
        self._hits += stats.cached_tokens > 0
        self._prompt_tokens += stats.prompt_tokens
        self._cached_tokens += stats.cached_tokens
        if stats.ms_first_draft > SLOW_FIRST_DRAFT_MS:
            self._slow += 1
            self._warn(stats.ms_first_draft)

    def _warn(self, ms: float) -> None:
        """The first, the tenth, the hundredth: a slow machine must not fill its log."""
        if self._slow == 10 ** (len(str(self._slow)) - 1):
            words = "%s: a first draft took %.0f ms, the limit is %.0f ms (slow ones so far: %d)"
            log.warning(words, self._route, ms, SLOW_FIRST_DRAFT_MS, self._slow)

    def report(self) -> RouteReport:
        return RouteReport(
            route=self._route,
            done=self._done,
            cancelled=self.cancelled,
            failed=self.failed,
            gate_failures=tuple((gate, count) for gate, count in self.gates.items() if count),
            fallbacks=self.fallbacks,
            slow_first_drafts=self._slow,
            cache_hits=self._hits,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            first_draft_ms=self._first_draft.report(),
            total_ms=self._total.report(),
            passes=self._passes.report(),
            tokens_per_pass=self._tokens_per_pass.report(),
            acceptance=self._acceptance.report(),
        )


class Monitor:
    """Not thread-safe. rollout: None where there is but one route, which needs no permit."""

    def __init__(self, rollout: Rollout | None = None) -> None:
        self._rollout = rollout
        self._routes: dict[Route, _RouteCounts] = {}

    def follow(self, job_id: str, run: Callable[[Course], Run]) -> Run:
        """The run that `run` begins for a job, with its end noted however it comes."""
        course = Course(self._rollout.admit(job_id) if self._rollout else Permit())
        try:
            done = yield from run(course)
        except GeneratorExit:
            if course.route is not None:
                self._of(course.route).cancelled += 1
            self._note(course, None)
            raise
        except BaseException:
            if course.route is not None:
                self._of(course.route).failed += 1
            self._note(course, course.went_well)
            raise
        self._of(done.stats.route).add(done.stats)
        self._note(course, course.went_well)
        return done

    @property
    def monitored(self) -> Monitored:
        """All numbers now."""
        routes = tuple(self._routes[route].report() for route in sorted(self._routes))
        if self._rollout is None:
            return Monitored(routes)
        return Monitored(routes, self._rollout.report(), self._rollout.share)

    def _note(self, course: Course, went_well: bool | None) -> None:
        for route, gate in course.refused:
            self._of(route).gates[gate] += 1
        if course.fallbacks:
            self._of("diffusion").fallbacks += course.fallbacks
        if self._rollout is not None:
            self._rollout.learn(course.permit, went_well)

    def _of(self, route: Route) -> _RouteCounts:
        return self._routes.setdefault(route, _RouteCounts(route))
