"""One live job per (document, kind): a newer one supersedes the older, which ends at once.

Owns which job is live and nothing of what it computes. A job ends in one of four ways: its result, its error,
`Superseded` (a newer job, or the document moved on) or cancellation of the task that runs it. In the last two the
work is cancelled and not waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

from lsp_server.rebase import Moved

Kind = Literal["inline", "menu", "rewrite"]
# What made a job's result useless: a newer job, another text (or none), the person's settings.
Why = Literal["newer", "changed", "turned off"]
Result = TypeVar("Result")


class Superseded(Exception):  # noqa: N818 (an outcome, named as the other outcomes are)
    """Something newer made this job's result useless."""


class Job:
    """A claim on a (document, kind), made before the first await of a handler.

    `outlives` says whether the job's result is still good once the document has moved on; by default it is not.
    `is_behind` says that its request has been answered and its work goes on for the next one. `why` says what ended it.
    """

    def __init__(self, owner: Inflight, uri: str, kind: Kind) -> None:
        self.uri = uri
        self.kind: Kind = kind
        self.is_behind = False
        self.why: Why = "changed"
        self.outlives: Callable[[Moved], bool] = lambda _moved: False
        self._owner = owner
        self._superseded = asyncio.Event()

    @property
    def is_superseded(self) -> bool:
        """Whether something newer took this job's place."""
        return self._superseded.is_set()

    def supersede(self, why: Why = "changed") -> None:
        """End this job: whatever it runs is cancelled. Harmless when it is over already."""
        if not self.is_superseded:
            self.why = why
        self._superseded.set()

    async def run(self, work: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
        """The result of `work`. Raises Superseded, TimeoutError after `timeout_s`, or what `work` raises."""
        if self.is_superseded:
            work.close()
            raise Superseded
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._superseded.wait())
        try:
            await asyncio.wait({task, gone}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self.is_superseded:
                raise Superseded
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            gone.cancel()
            self._owner.abandon(task)

    def finish(self) -> None:
        """Give the claim back. Harmless when a newer job holds it."""
        self._owner.release(self)


class Inflight:
    """The live jobs of a session."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, Kind], Job] = {}
        self._leaving: set[asyncio.Future[Any]] = set()

    def claim(self, uri: str, kind: Kind) -> Job:
        """A new live job; the one that held the place is superseded."""
        self.supersede(uri, kind, why="newer")
        job = Job(self, uri, kind)
        self._live[uri, kind] = job
        return job

    def supersede(self, uri: str, *kinds: Kind, why: Why = "changed") -> None:
        """End the live jobs of a document; without `kinds`, all of them."""
        for key in [key for key in self._live if key[0] == uri and (not kinds or key[1] in kinds)]:
            self._live.pop(key).supersede(why)

    def move(self, uri: str, moved: Moved) -> None:
        """A document is about to move on: its live jobs end, but for those that outlive the changes."""
        for key in [key for key, job in self._live.items() if key[0] == uri and not job.outlives(moved)]:
            self._live.pop(key).supersede()

    def make_room(self) -> None:
        """Somebody waits for the engine: jobs that nobody waits for end."""
        for key in [key for key, job in self._live.items() if job.is_behind]:
            self._live.pop(key).supersede("newer")

    def release(self, job: Job) -> None:
        """Forget `job` if it is still the live one."""
        if self._live.get((job.uri, job.kind)) is job:
            del self._live[job.uri, job.kind]

    @property
    def count(self) -> int:
        """How many jobs are live."""
        return len(self._live)

    def abandon(self, task: asyncio.Future[Any]) -> None:
        """Cancel `task` without waiting; it stays referenced until it has ended, and its error is nobody's."""
        if task.done():
            _forget_error(task)
            return
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        task.add_done_callback(_forget_error)
        task.cancel()


def _forget_error(task: asyncio.Future[Any]) -> None:
    """Mark the error as seen: asyncio would report it as never retrieved."""
    if not task.cancelled():
        task.exception()
