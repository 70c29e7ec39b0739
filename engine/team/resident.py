"""One loaded model for callers of an event loop: `ResidentEngine`, the engine's own loop on a thread of its own.

Users are the loop's clients, so that its scheduler is fair between them; ids of jobs are ours, because two editors of
one user count alike. Owns no sockets and knows nothing of Ray.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from engine.loop import (
    CancelAsked,
    CoreFactory,
    Counted,
    DrainAsked,
    EngineLoop,
    Loaded,
    LoadFailed,
    LoadingMoved,
    Outward,
    Replied,
    Stopped,
    Submitted,
)
from engine.protocol.errors import EngineError
from engine.protocol.messages import Cancelled, Done, Draft, Facts, Failed, Fill, Found, Rewrite
from engine.watchdog import step_limit_s, until_stuck, whereabouts

log = logging.getLogger(__name__)

JobReply = Draft | Found | Done | Cancelled | Failed
_ENDING = (Done, Cancelled, Failed)


class ResidentEngine:
    """A model that serves jobs. Belongs to the event loop in which it was made."""

    def __init__(self, factory: CoreFactory, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = asyncio.get_running_loop()
        self._clock = clock
        self._loop = EngineLoop(factory, self._emit, clock)
        self._thread = threading.Thread(target=self._loop.run, name="engine-loop", daemon=True)
        self._loaded: asyncio.Future[Facts] = self._events.create_future()
        self._numbers = itertools.count(1)
        self._users: dict[str, int] = {}
        self._replies: dict[str, asyncio.Queue[JobReply | EngineError]] = {}
        self.is_retired = False

    async def load(self) -> Facts:
        """Load the model, once. Raises EngineError as the core's factory does."""
        if not self._thread.is_alive() and not self._loaded.done():
            self._thread.start()
        return await asyncio.shield(self._loaded)

    @property
    def is_alive(self) -> bool:
        """Whether its loop runs: if not, no job will ever be answered."""
        return self._thread.is_alive()

    async def jobs(self, user: str, request: Fill | Rewrite) -> AsyncGenerator[JobReply, None]:
        """A job's replies, the last of which is Done, Cancelled or Failed. Closing the iterator cancels the job.

        Raises EngineError(gone) when this engine has left or leaves under it: another one can take the job.
        """
        received = self._clock()
        await self.load()
        if self.is_retired or not self.is_alive:
            raise _gone()
        client = self._users.setdefault(user, len(self._users) + 1)
        job = f"{next(self._numbers)}"
        replies: asyncio.Queue[JobReply | EngineError] = asyncio.Queue()
        self._replies[job] = replies
        is_over = False
        self._loop.post(Submitted(client, replace(request, id=job), received))
        try:
            while not is_over:
                reply = await replies.get()
                if isinstance(reply, EngineError):
                    raise reply
                is_over = isinstance(reply, _ENDING)
                yield replace(reply, id=request.id)
        finally:
            del self._replies[job]
            if not is_over:
                self._loop.post(CancelAsked(client, job))
            self._leave_if_due()

    async def until_stuck(self, wanted_s: float = 0.0) -> str:
        """Return where a step hangs, once one has taken longer than `watchdog.step_limit_s` allows."""
        limit_s = step_limit_s(wanted_s, await self.load())
        await until_stuck(lambda: self._loop.pulse, limit_s)
        return f"a step has not ended for {limit_s:.0f} s, at {whereabouts(self._thread.ident)}"

    def retire(self) -> None:
        """Take no more jobs, and leave when those under way have ended. May be called from any thread, and again."""
        if not self._events.is_closed():
            self._events.call_soon_threadsafe(self._retire)

    def _retire(self) -> None:
        self.is_retired = True
        self._leave_if_due()

    def _leave_if_due(self) -> None:
        if self.is_retired and not self._replies:
            self.close()

    def close(self) -> None:
        """Leave: running jobs are cancelled, waiting ones refused. May be called from any thread, and again."""
        self._loop.post(DrainAsked())

    def _emit(self, outward: Outward) -> None:
        """On the loop's thread: hand over to the event loop, unless that has gone."""
        if not self._events.is_closed():
            self._events.call_soon_threadsafe(self._take, outward)

    def _take(self, outward: Outward) -> None:
        match outward:
            case Replied(reply=Draft() | Found() | Done() | Cancelled() | Failed() as reply):
                if reply.id in self._replies:
                    self._replies[reply.id].put_nowait(reply)
            case LoadingMoved(stage=stage, fraction=fraction):
                log.info("loading: %s %.0f %%", stage, fraction * 100)
            case Loaded(facts=facts):
                self._settle(facts)
            case LoadFailed(error=error):
                self._settle(error)
            case Stopped():
                self._settle(_gone())
                for replies in self._replies.values():
                    replies.put_nowait(_gone())
            case Counted():
                pass  # a team's numbers are the gate's and Ray Serve's
            case _:
                log.warning("the engine's loop told something nobody asked for")

    def _settle(self, outcome: Facts | EngineError) -> None:
        if self._loaded.done():
            return
        if isinstance(outcome, Facts):
            self._loaded.set_result(outcome)
        else:
            self._loaded.set_exception(outcome)


def _gone() -> EngineError:
    return EngineError("gone", "the engine's loop has ended", "ask again; another replica takes the job")
