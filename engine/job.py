"""The seam between the engine's loop and what it runs: a core turns one request into a stream of steps.

A run is a generator: each `next()` computes exactly one step (a chunk of the prompt or one denoising pass) and
yields a `Draft`, a `Found` or None; its return value is the `Done`. Closing the generator abandons the job: nothing
more is computed for it. This is what makes cancel, deadline and interleaving possible between steps.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.protocol.messages import BreakerReport, Done, Draft, Facts, Fill, Found, Rewrite, RouteReport

Run = Generator[Draft | Found | None, None, Done]
Preparation = Generator[None, None, None]


class Core(Protocol):
    """A loaded model behind the requests it can serve. Not thread-safe; raises EngineError for bad requests."""

    @property
    def facts(self) -> Facts: ...

    def start(self, request: Fill | Rewrite) -> Run:
        """Begin a job. Computes nothing until the first `next()`; the clock of the stats starts here."""
        ...


@runtime_checkable
class PreparingCore(Core, Protocol):
    """A core that has something to do while no job is there."""

    def prepare(self) -> Preparation:
        """Work for the requests that will likely come, in steps as short as a pass of a few rows.

        It is begun when the last job has ended, closed before another begins, and may be begun any number of times:
        what is done already costs nothing. No answer depends on how much of it was done.
        """
        ...


@dataclass(frozen=True, slots=True)
class Monitored:
    """What came of a core's jobs; see `StatusReport`."""

    routes: tuple[RouteReport, ...] = ()
    breaker: BreakerReport | None = None
    diffusion_share: float = 100.0


@runtime_checkable
class MonitoredCore(Core, Protocol):
    """A core that counts what comes of its jobs."""

    @property
    def monitored(self) -> Monitored:
        """The numbers now. It is asked for after every job."""
        ...
