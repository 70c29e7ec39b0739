"""Steps of several jobs in one forward pass: `BatchingCore`, around the core of a family that gains from it.

It batches as Orca does (Yu et al. 2022, OSDI): the batch is put together anew for every step, so a job joins at its
first step and leaves at its last, and nobody waits for jobs that have not come. A turn of one job takes the step that
the job has come to, and with it those of as many others as there is room for, least recently stepped first. Others
that are still reading their known text are given the window to get to their step; then the pass goes without them.

Owns no threads, no queue and no fairness between users: whose turn it is, the loop's scheduler says. The text of a job
does not depend on what it is batched with, but for the rounding of a wider pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import NoReturn

from engine.canvas_serving.core import CanvasCore
from engine.diffusion.shared_step import SharedStep
from engine.job import Core, Run
from engine.loop import log_fault
from engine.models.canvas_model import CanvasModel, JobStep, JointModel
from engine.protocol.messages import Done, Draft, Facts, Fill, Found, Rewrite
from engine.team.batch_limits import BatchLimits

log = logging.getLogger(__name__)


@dataclass(slots=True)
class BatchCounts:
    """passes: joint ones, of two jobs and more. steps: the jobs' steps that were taken in them."""

    passes: int = 0
    steps: int = 0


class _Seat:
    """A job under way. `wanted`: the step it has come to, until it goes on. `news`: the latest not handed over."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.wanted: SharedStep | None = None
        self.news: Draft | Found | None = None
        self.done: Done | None = None
        self.fault: Exception | None = None
        self.stepped = 0

    @property
    def is_over(self) -> bool:
        return self.done is not None or self.fault is not None

    @property
    def is_waiting(self) -> bool:
        """Whether it has come to a step that nobody has taken."""
        return self.wanted is not None and not self.wanted.is_answered


class BatchingCore:
    """A `Core`; see `job`. Not thread-safe: the engine's loop owns it."""

    def __init__(
        self, core: CanvasCore, model: JointModel, limits: BatchLimits, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._core = core
        self._model = model
        self._limits = limits
        self._room = limits.canvases
        self._clock = clock
        self._seats: list[_Seat] = []
        self._going: _Seat | None = None
        self._turns = 0
        self.counts = BatchCounts()
        core.share(self._offered)

    @property
    def facts(self) -> Facts:
        """What the engine is."""
        return self._core.facts

    def start(self, request: Fill | Rewrite) -> Run:
        """Begin a job; from now on others may take its steps along."""
        seat = _Seat(self._core.start(request))
        self._seats.append(seat)
        return _Turns(self, seat)

    def turn(self, seat: _Seat) -> Draft | Found | None:
        """One step of a job, of which the others profit. Raises StopIteration with its Done, or what it failed with."""
        if seat.wanted is not None and not seat.is_waiting:
            self._advance(seat)  # another one's turn took its step
        if seat.news is None and not seat.is_over:
            self._step(seat)
        if seat.is_over:
            self.leave(seat)
            _raise_outcome(seat)
        news, seat.news = seat.news, None
        return news

    def leave(self, seat: _Seat) -> None:
        """The job is over or abandoned: nothing more is computed for it."""
        self._seats = [other for other in self._seats if other is not seat]
        seat.run.close()

    def _step(self, seat: _Seat) -> None:
        if not seat.is_waiting:
            self._advance(seat)
        if seat.is_waiting:
            self._take_steps(seat)
            self._advance(seat)

    def _advance(self, seat: _Seat) -> None:
        """Let a job run to the next place where it pauses."""
        seat.wanted = None
        self._going = seat
        try:
            news = next(seat.run)
        except StopIteration as end:
            seat.done = end.value
        except Exception as fault:  # noqa: BLE001 - told in the job's own turn
            seat.fault = fault
        else:
            seat.news = news or seat.news
        finally:
            self._going = None

    def _offered(self, model: CanvasModel, wanted: JobStep) -> SharedStep:
        shared = SharedStep(model, wanted)
        if self._going is not None:
            self._going.wanted = shared
        return shared

    def _take_steps(self, seat: _Seat) -> None:
        """Take the step of `seat` and of whoever else fits. One that stays alone is taken when its job goes on."""
        batch = self._gathered(seat)
        self._turns += 1
        for each in batch:
            each.stepped = self._turns
        steps = [each.wanted for each in batch if each.wanted is not None]
        if len(steps) == 1:
            return
        try:
            answers = self._model.step_together([step.wanted for step in steps])
        except Exception as fault:  # noqa: BLE001 - each is taken alone then, and fails alone if it must
            self._room = max(1, sum(step.canvases for step in steps) // 2)
            log_fault(f"a pass of {len(steps)} jobs failed, from now on at most {self._room} canvases", fault)
            return
        self.counts.passes += 1
        self.counts.steps += len(steps)
        for step, predictions in zip(steps, answers, strict=True):
            step.answer(predictions)

    def _gathered(self, first: _Seat) -> list[_Seat]:
        """The jobs of a pass: `first`, then those that were not stepped for longest."""
        batch = [first]
        room = self._room - _canvases(first)
        close = self._clock() + self._limits.window_s
        others = (seat for seat in self._seats if seat is not first)
        for seat in sorted(others, key=lambda other: other.stepped):
            if room < 1:
                break
            while not seat.is_waiting and not seat.is_over and self._clock() < close:
                self._advance(seat)
            if seat.is_waiting and _canvases(seat) <= room:
                batch.append(seat)
                room -= _canvases(seat)
        return batch


class _Turns(Generator[Draft | Found | None, None, Done]):
    """A job's run as the loop sees it."""

    def __init__(self, core: BatchingCore, seat: _Seat) -> None:
        self._core = core
        self._seat = seat

    def send(self, value: None, /) -> Draft | Found | None:  # noqa: ARG002 - a run takes nothing in
        return self._core.turn(self._seat)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> NoReturn:
        self.close()
        raise kind if isinstance(kind, BaseException) else kind(value).with_traceback(traceback)

    def close(self) -> None:
        self._core.leave(self._seat)


def batched(core: Core, limits: BatchLimits) -> Core:
    """`core`, with steps batched where its family gains from it: one that denoises whole canvases, in joint passes."""
    if isinstance(core, CanvasCore) and isinstance(core.model, JointModel) and limits.canvases > 1:
        return BatchingCore(core, core.model, limits)
    return core


def _canvases(seat: _Seat) -> int:
    return seat.wanted.canvases if seat.wanted is not None else 0


def _raise_outcome(seat: _Seat) -> NoReturn:
    if seat.fault is not None:
        raise seat.fault
    raise StopIteration(seat.done)
