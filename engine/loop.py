"""The engine's loop: one thread that loads the core, then takes one step of one job at a time.

Owns the core and every run. It reads an inbox before every step, so a cancel takes effect before the next one, and
hands replies to `emit`; it touches no socket. Every job that enters leaves by exactly one of Done, Cancelled, Failed.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from engine.job import Core, Monitored, MonitoredCore, Preparation, PreparingCore, Run
from engine.protocol.errors import EngineError
from engine.protocol.messages import Cancelled, Done, Draft, Facts, Failed, Fill, Found, Reply, Rewrite
from engine.scheduler import Scheduler

log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
CoreFactory = Callable[[Progress], Core]

_MOST_FRAMES = 20
"""Places a logged fault is followed to."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A request of connection `client`, received at `received` (seconds of `time.monotonic`)."""

    client: int
    request: Fill | Rewrite
    received: float


@dataclass(frozen=True, slots=True)
class CancelAsked:
    client: int
    job_id: str


@dataclass(frozen=True, slots=True)
class ClientLeft:
    client: int


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Finish: running jobs are cancelled, waiting ones refused, then the loop ends."""


@dataclass(frozen=True, slots=True)
class LoadingMoved:
    stage: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Loaded:
    facts: Facts


@dataclass(frozen=True, slots=True)
class LoadFailed:
    error: EngineError


@dataclass(frozen=True, slots=True)
class Counted:
    """What came of the jobs so far; told after each, before its answer."""

    monitored: Monitored


@dataclass(frozen=True, slots=True)
class Replied:
    client: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class Stopped:
    """The loop has ended; nothing follows."""


Inward = Submitted | CancelAsked | ClientLeft | DrainAsked
Outward = LoadingMoved | Loaded | LoadFailed | Counted | Replied | Stopped
Key = tuple[int, str]


class _LoadAbandonedError(Exception):
    """Raised through a core factory's progress call when the engine is to leave while it loads."""


class EngineLoop:
    """`run` is the thread's body; `post` may be called from any thread."""

    def __init__(
        self,
        core_factory: CoreFactory,
        emit: Callable[[Outward], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._core_factory = core_factory
        self._emit = emit
        self._clock = clock
        self._inbox: queue.SimpleQueue[Inward] = queue.SimpleQueue()
        self._scheduler: Scheduler[Key] = Scheduler()
        self._jobs: dict[Key, tuple[Run, Fill | Rewrite]] = {}
        self._core: Core | None = None
        self._preparation: Preparation | None = None
        self._draining = False
        self._turns = 0
        self._pulse: int | None = None

    @property
    def pulse(self) -> int | None:
        """The number of the turn the loop is in: None while it loads or waits for work. For other threads, too."""
        return self._pulse

    def post(self, message: Inward) -> None:
        """Hand `message` to the loop; it is read before the next step."""
        self._inbox.put(message)

    def run(self) -> None:
        """Load, serve until drained, end."""
        try:
            core = self._load()
            if core is not None:
                self._emit(Loaded(core.facts))
                if isinstance(core, MonitoredCore):
                    self._emit(Counted(core.monitored))
                self._serve(core)
        finally:
            self._emit(Stopped())

    def _load(self) -> Core | None:
        try:
            return self._core_factory(self._tell_progress)
        except _LoadAbandonedError:
            return None
        except EngineError as error:
            self._emit(LoadFailed(error))
        except Exception as fault:  # noqa: BLE001 - whoever waits for the model must be told, whatever it was
            log_fault("the model could not be loaded", fault)
            self._emit(LoadFailed(_as_engine_error(fault, "loading the model")))
        return None

    def _tell_progress(self, stage: str, fraction: float) -> None:
        # Nothing but a drain matters before the model is there: requests are refused before they reach the inbox.
        while not self._inbox.empty():
            if isinstance(self._inbox.get(), DrainAsked):
                raise _LoadAbandonedError
        self._emit(LoadingMoved(stage, min(1.0, max(0.0, float(fraction)))))

    def _serve(self, core: Core) -> None:
        self._core = core
        while True:
            self._turns += 1
            self._pulse = self._turns
            self._read_inbox()
            key = self._scheduler.next(self._clock())
            if key is not None:
                self._step(key)
            elif self._draining:
                return
            elif self._preparation is not None:
                self._prepare(self._preparation)

    def _read_inbox(self) -> None:
        """Take in everything that has arrived; wait for something when there is nothing to step."""
        if not self._jobs and not self._draining and self._preparation is None:
            self._pulse = None
            message = self._inbox.get()
            self._pulse = self._turns
            self._take(message)
        while not self._inbox.empty():
            self._take(self._inbox.get())

    def _take(self, message: Inward) -> None:
        match message:
            case Submitted():
                self._begin(message)
            case CancelAsked(client=client, job_id=job_id):
                self._cancel((client, job_id))
            case ClientLeft(client=client):
                for key in self._scheduler.keys_of(client):
                    self._cancel(key)
            case DrainAsked():
                self._drain()

    def _begin(self, message: Submitted) -> None:
        request = message.request
        key = (message.client, request.id)
        if self._draining:
            self._reply(key, refusal_while_draining(request.id))
            return
        self._end_preparation()
        try:
            assert self._core is not None
            run = self._core.start(request)
        except Exception as fault:  # noqa: BLE001 - answered as Failed
            self._fail(key, fault)
            return
        deadline = message.received + request.deadline_ms / 1000 if request.deadline_ms > 0 else math.inf
        self._jobs[key] = run, request
        self._scheduler.add(key, message.client, "fill" if isinstance(request, Fill) else "rewrite", deadline)

    def _step(self, key: Key) -> None:
        run, request = self._jobs[key]
        try:
            news = next(run)
        except StopIteration as end:
            self._forget(key)
            self._finish(key, end.value)
        except Exception as fault:  # noqa: BLE001 - one job's fault ends that job only
            self._forget(key)
            self._fail(key, fault)
        else:
            if isinstance(news, Found) or (isinstance(news, Draft) and request.wants_drafts):
                self._reply(key, news)

    def _finish(self, key: Key, result: object) -> None:
        if isinstance(result, Done):
            self._reply(key, result)
        else:
            self._fail(key, TypeError(f"a run returned {type(result).__name__}"))

    def _cancel(self, key: Key) -> None:
        """Abandon a job and say so; unknown and finished ones are ignored."""
        if key not in self._jobs:
            return
        run, _ = self._forget(key)
        self._close(run)
        self._reply(key, Cancelled(key[1]))

    def _prepare(self, preparation: Preparation) -> None:
        """One step of the work nobody waits for. Its faults end it and nothing else."""
        try:
            next(preparation)
        except StopIteration:
            self._preparation = None
        except Exception as fault:  # noqa: BLE001 - no job depends on it
            log_fault("preparing for the next request failed", fault)
            self._preparation = None

    def _end_preparation(self) -> None:
        if self._preparation is not None:
            self._close(self._preparation)
            self._preparation = None

    def _drain(self) -> None:
        self._draining = True
        self._end_preparation()
        for key in self._scheduler.started():
            self._cancel(key)
        for key in list(self._jobs):
            self._close(self._forget(key)[0])
            self._reply(key, refusal_while_draining(key[1]))

    def _forget(self, key: Key) -> tuple[Run, Fill | Rewrite]:
        """Take a job out. What can be prepared is prepared when the last one is gone."""
        self._scheduler.remove(key)
        forgotten = self._jobs.pop(key)
        if not self._jobs and not self._draining and isinstance(self._core, PreparingCore):
            self._preparation = self._core.prepare()
        return forgotten

    def _close(self, run: Run | Preparation) -> None:
        try:
            run.close()
        except Exception as fault:  # noqa: BLE001 - the job is over whatever its clean-up does
            log_fault("abandoning a job failed", fault)

    def _fail(self, key: Key, fault: Exception) -> None:
        error = fault if isinstance(fault, EngineError) else _as_engine_error(fault, "the job")
        if error is not fault:
            log_fault("a job failed", fault)
        self._reply(key, Failed(key[1], error.kind, error.message, error.remedy))

    def _reply(self, key: Key, reply: Reply) -> None:
        if isinstance(reply, Done | Cancelled | Failed) and isinstance(self._core, MonitoredCore):
            self._emit(Counted(self._core.monitored))
        self._emit(Replied(key[0], reply))


def refusal_while_draining(job_id: str) -> Failed:
    """The answer to a job that comes when the engine is about to leave. An empty id tells it to a connection."""
    return Failed(job_id, "draining", "the engine is leaving", "ask again; it is started anew when it is needed")


def log_fault(what: str, fault: Exception) -> None:
    """Log where `fault` was raised. Its own words are left out: they may quote a document."""
    # The innermost ones: a recursion without end has a thousand.
    frames = traceback.extract_tb(fault.__traceback__, limit=-_MOST_FRAMES)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    log.error("%s: %s at %s", what, _name(fault), places or "an unknown place")


def _as_engine_error(fault: Exception, what: str) -> EngineError:
    # torch raises its own class of this name, and this file must not need torch.
    if isinstance(fault, MemoryError) or type(fault).__name__ == "OutOfMemoryError":
        return EngineError("out_of_memory", f"memory ran out during {what}", "close programs or use a smaller model")
    return EngineError(
        "internal", f"{what} failed inside the engine ({_name(fault)})", "see the engine's log, and report it"
    )


def _name(fault: Exception) -> str:
    """The fault's class, and for a fault of the system what the system calls it; never the fault's own words."""
    kind = type(fault).__name__
    return f"{kind}: {os.strerror(fault.errno)}" if isinstance(fault, OSError) and fault.errno else kind
