"""One live job per (document, kind): a newer one supersedes the older, which ends at once.

Jobs about places that do not overlap may live side by side, where one of them does not need to be alone. Owns which job
is live and nothing of what it computes. A job ends in one of four ways: its result, its error, `Superseded` (a newer
job, or the document moved on) or cancellation of the task that runs it. In the last two the work is cancelled and not
waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

from lsp_server.rebase import Anchor, Moved

Kind = Literal["inline", "menu", "rewrite"]
# What made a job's result useless: a newer job, another text (or none), the person's settings.
Why = Literal["newer", "changed", "turned off"]
Result = TypeVar("Result")


class Superseded(Exception):  # noqa: N818 (an outcome, named as the other outcomes are)
    """Something newer made this job's result useless."""


class Job:
    """A claim on a (document, kind), made before the first await of a handler.

    `place` is what it is about, where it is about a part of the document only. Of two that are alone the newer ends the
    older wherever it is; others only where their places overlap.
    `outlives` says whether the job's result is still good once the document has moved on; by default it is not.
    `is_behind` says that its request has been answered and its work goes on for the next one. `why` says what ended it.
    """

    def __init__(
        self, owner: Inflight, uri: str, kind: Kind, place: Anchor | None = None, *, is_alone: bool = True
    ) -> None:
        self.uri = uri
        self.place = place
        self.is_alone = is_alone
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

    def clashes(self, other: Job) -> bool:
        """Whether only one of two jobs of the same document and kind may live."""
        if self.place is None or other.place is None or (self.is_alone and other.is_alone):
            return True
        first, last = sorted((self.place, other.place), key=lambda place: (place.start, place.end))
        return last.start < first.end or (first.start, first.end) == (last.start, last.end)

    def finish(self) -> None:
        """Give the claim back. Harmless when a newer job holds it."""
        self._owner.release(self)


class Inflight:
    """The live jobs of a session."""

    def __init__(self) -> None:
        self._live: list[Job] = []
        self._leaving: set[asyncio.Future[Any]] = set()

    def claim(self, uri: str, kind: Kind, place: Anchor | None = None, *, is_alone: bool = True) -> Job:
        """A new live job; those that it clashes with are superseded."""
        job = Job(self, uri, kind, place, is_alone=is_alone)
        self._end(lambda other: (other.uri, other.kind) == (uri, kind) and job.clashes(other), "newer")
        self._live.append(job)
        return job

    def supersede(self, uri: str, *kinds: Kind, why: Why = "changed") -> None:
        """End the live jobs of a document; without `kinds`, all of them."""
        self._end(lambda job: job.uri == uri and (not kinds or job.kind in kinds), why)

    def move(self, uri: str, moved: Moved) -> None:
        """A document is about to move on: its live jobs end, but for those that outlive the changes."""
        self._end(lambda job: job.uri == uri and not job.outlives(moved), "changed")

    def make_room(self) -> None:
        """Somebody waits for the engine: jobs that nobody waits for end."""
        self._end(lambda job: job.is_behind, "newer")

    def release(self, job: Job) -> None:
        """Forget `job` if it is still live."""
        if job in self._live:
            self._live.remove(job)

    @property
    def count(self) -> int:
        """How many jobs are live."""
        return len(self._live)

    def _end(self, is_over: Callable[[Job], bool], why: Why) -> None:
        ended = [job for job in self._live if is_over(job)]
        self._live = [job for job in self._live if job not in ended]
        for job in ended:
            job.supersede(why)

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
