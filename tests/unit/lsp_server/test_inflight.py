"""One live job per (document, kind)."""

from __future__ import annotations

import asyncio

import pytest

from lsp_server.document import Document
from lsp_server.inflight import Inflight, Superseded
from lsp_server.positions import PositionEncoding
from lsp_server.rebase import Anchor, Moved

pytestmark = pytest.mark.asyncio

URI = "file:///a.py"


class Work:
    """A coroutine that waits until it is released, and remembers whether it was cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.released = asyncio.Event()
        self.cancelled = False

    async def run(self) -> str:
        self.started.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "done"


async def turns(count: int = 5) -> None:
    """Let everything that can run, run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_job_gives_the_result_of_its_work() -> None:
    inflight, work = Inflight(), Work()
    work.released.set()
    job = inflight.claim(URI, "inline")
    assert await job.run(work.run()) == "done"
    assert inflight.count == 1
    job.finish()
    assert inflight.count == 0


async def test_a_newer_claim_ends_the_older_job_and_its_work() -> None:
    inflight, work = Inflight(), Work()
    older = asyncio.create_task(inflight.claim(URI, "inline").run(work.run()))
    await work.started.wait()
    newer = inflight.claim(URI, "inline")
    with pytest.raises(Superseded):
        await older
    await turns()
    assert work.cancelled
    assert not newer.is_superseded


async def test_work_that_is_slow_to_stop_is_not_waited_for() -> None:
    inflight, let_go = Inflight(), asyncio.Event()
    started = asyncio.Event()

    async def stubborn() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await let_go.wait()

    older = asyncio.create_task(inflight.claim(URI, "inline").run(stubborn()))
    await started.wait()
    inflight.supersede(URI)
    with pytest.raises(Superseded):
        await asyncio.wait_for(older, 1)
    let_go.set()
    await turns()


async def test_other_kinds_and_documents_are_left_alone() -> None:
    inflight = Inflight()
    jobs = [inflight.claim(URI, "inline"), inflight.claim(URI, "menu"), inflight.claim("other", "inline")]
    inflight.claim(URI, "inline")
    assert [job.is_superseded for job in jobs] == [True, False, False]
    inflight.supersede(URI, "rewrite")
    assert [job.is_superseded for job in jobs] == [True, False, False]
    inflight.supersede(URI)
    assert [job.is_superseded for job in jobs] == [True, True, False]


async def test_a_job_overtaken_before_it_runs_starts_no_work() -> None:
    inflight, work = Inflight(), Work()
    job = inflight.claim(URI, "inline")
    inflight.supersede(URI)
    with pytest.raises(Superseded):
        await job.run(work.run())
    assert not work.started.is_set()


async def test_cancelling_the_task_cancels_the_work() -> None:
    inflight, work = Inflight(), Work()
    task = asyncio.create_task(inflight.claim(URI, "inline").run(work.run()))
    await work.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turns()
    assert work.cancelled


async def test_a_timeout_cancels_the_work() -> None:
    inflight, work = Inflight(), Work()
    with pytest.raises(TimeoutError):
        await inflight.claim(URI, "inline").run(work.run(), timeout_s=0.01)
    await turns()
    assert work.cancelled


async def test_an_error_of_the_work_is_the_jobs() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Inflight().claim(URI, "inline").run(fail())


async def test_an_error_after_the_end_is_nobodys() -> None:
    inflight = Inflight()
    started = asyncio.Event()

    async def fail_late() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("late")

    task = asyncio.create_task(inflight.claim(URI, "inline").run(fail_late()))
    await started.wait()
    inflight.supersede(URI)
    with pytest.raises(Superseded):
        await task
    # Under "warnings are errors" an error never looked at would fail this test.
    await turns()


async def test_an_older_job_cannot_give_back_a_newer_claim() -> None:
    inflight = Inflight()
    older = inflight.claim(URI, "inline")
    newer = inflight.claim(URI, "inline")
    older.finish()
    assert inflight.count == 1
    newer.finish()
    newer.finish()
    assert inflight.count == 0


async def test_jobs_about_other_places_live_side_by_side_unless_both_are_alone() -> None:
    inflight = Inflight()
    first = inflight.claim(URI, "rewrite", Anchor(0, 10), is_alone=False)
    alone = inflight.claim(URI, "rewrite", Anchor(10, 20))
    cursor = inflight.claim(URI, "rewrite", Anchor(20, 20), is_alone=False)
    assert inflight.count == 3
    other = inflight.claim(URI, "rewrite", Anchor(30, 31))
    assert [job.is_superseded for job in (first, alone, cursor)] == [False, True, False]
    inflight.claim(URI, "rewrite", Anchor(20, 20), is_alone=False)
    inflight.claim(URI, "rewrite", Anchor(2, 3), is_alone=False)
    assert [job.is_superseded for job in (first, cursor, other)] == [True, True, False]
    inflight.claim(URI, "rewrite")
    assert other.is_superseded
    assert inflight.count == 1


async def test_a_document_that_moves_ends_what_cannot_follow() -> None:
    inflight, work = Inflight(), Work()
    follower, other, elsewhere = (
        inflight.claim(URI, "rewrite"),
        inflight.claim(URI, "inline"),
        inflight.claim("b", "menu"),
    )
    asked: list[Moved] = []

    def follows(moved: Moved) -> bool:
        asked.append(moved)
        return len(asked) == 1

    follower.outlives = follows
    running = asyncio.create_task(follower.run(work.run()))
    await work.started.wait()
    moved = Moved(Document.open(URI, 1, "python", ""), (), PositionEncoding.UTF16)
    inflight.move(URI, moved)
    assert (follower.is_superseded, other.is_superseded, elsewhere.is_superseded) == (False, True, False)
    assert asked == [moved]
    inflight.move(URI, moved)
    with pytest.raises(Superseded):
        await running
