"""`ResidentEngine`: jobs of several users on the engine's own loop, for an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from engine.protocol.errors import EngineError
from engine.protocol.messages import Cancelled, Done, Draft, Failed, Fill, Rewrite
from engine.team.resident import JobReply, ResidentEngine
from tests.fakes.scripted_core import ScriptedCore

PATIENCE_S = 20.0
ENDLESS = "steps=0 delay=0.001"

pytestmark = pytest.mark.asyncio


@contextlib.asynccontextmanager
async def resident(core: ScriptedCore | None = None) -> AsyncIterator[ResidentEngine]:
    engine = ResidentEngine(lambda progress: core or ScriptedCore())
    await engine.load()
    try:
        yield engine
    finally:
        engine.close()
        await until(lambda: not engine.is_alive)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


def fill(name: str, script: str = "steps=2", **changes: object) -> Fill:
    return Fill(name, "python", script, "", wants_drafts=True, **changes)  # type: ignore[arg-type]


async def replies_of(engine: ResidentEngine, user: str, request: Fill | Rewrite) -> list[JobReply]:
    async with asyncio.timeout(PATIENCE_S):
        return [reply async for reply in engine.jobs(user, request)]


async def test_a_job_s_drafts_come_in_order_and_its_end_last() -> None:
    async with resident() as engine:
        replies = await replies_of(engine, "ada", fill("7", "steps=3 text=abcdef"))
    assert [reply.step for reply in replies if isinstance(reply, Draft)] == [1, 2, 3]
    assert isinstance(replies[-1], Done)
    assert {reply.id for reply in replies} == {"7"}


async def test_two_editors_of_one_user_may_use_the_same_id() -> None:
    async with resident() as engine:
        requests = [fill("1", f"text={word}") for word in ("one", "two", "three")]
        ends = [replies[-1] for replies in await asyncio.gather(*(replies_of(engine, "ada", one) for one in requests))]
    assert [end.text for end in ends if isinstance(end, Done)] == ["one", "two", "three"]


async def test_a_closed_job_is_abandoned_at_once() -> None:
    core = ScriptedCore()
    async with resident(core) as engine:
        async with contextlib.aclosing(engine.jobs("ada", fill("1", ENDLESS))) as replies:
            async for _ in replies:
                break
        await until(lambda: bool(core.abandoned))
        # Nothing is left of it, and others are served.
        assert isinstance((await replies_of(engine, "ada", fill("2")))[-1], Done)


async def test_users_take_turns_however_many_jobs_one_has() -> None:
    core = ScriptedCore()
    async with resident(core) as engine:
        many = [asyncio.create_task(replies_of(engine, "ada", fill(str(n), "steps=40 delay=0.002"))) for n in range(5)]
        await until(lambda: len(core.order) > 10)
        before = len(core.order)
        await replies_of(engine, "bob", Rewrite("b", "python", "", "x", "", "steps=10 delay=0.002"))
        # A rewrite beside fills has every fourth step; were the five jobs asked in turn as well, it would have a 24th.
        assert len(core.order) - before <= 10 * 4 + 8
        for task in many:
            task.cancel()
        await asyncio.gather(*many, return_exceptions=True)


async def test_a_fault_ends_its_job_only() -> None:
    async with resident() as engine:
        bad, good = await asyncio.gather(
            replies_of(engine, "ada", fill("1", "fail=window_exceeded")), replies_of(engine, "bob", fill("2"))
        )
    assert isinstance(bad[-1], Failed)
    assert bad[-1].kind == "window_exceeded"
    assert isinstance(good[-1], Done)


async def test_a_model_that_cannot_be_loaded_says_so() -> None:
    def broken(progress: object) -> ScriptedCore:
        raise EngineError("model_missing", "it is not there", "pull it")

    engine = ResidentEngine(broken)
    with pytest.raises(EngineError, match="not there"):
        await engine.load()
    await until(lambda: not engine.is_alive)
    with pytest.raises(EngineError, match="not there"):
        await replies_of(engine, "ada", fill("1"))


async def test_one_that_retires_ends_its_jobs_first_and_takes_no_more() -> None:
    async with resident() as engine:
        running = asyncio.create_task(replies_of(engine, "ada", fill("1", "steps=50 delay=0.002")))
        await asyncio.sleep(0.02)
        engine.retire()
        await until(lambda: engine.is_retired)
        with pytest.raises(EngineError, match="ended") as refused:
            await replies_of(engine, "ada", fill("2"))
        assert refused.value.kind == "gone"
        assert isinstance((await running)[-1], Done)
        await until(lambda: not engine.is_alive)


async def test_one_that_retires_with_nothing_to_do_leaves_at_once() -> None:
    async with resident() as engine:
        engine.retire()
        await until(lambda: not engine.is_alive)


async def test_a_step_that_hangs_is_noticed_and_where() -> None:
    async with resident() as engine:
        running = asyncio.create_task(replies_of(engine, "ada", fill("1", "steps=1 delay=1.5")))
        where = await engine.until_stuck(0.5)
        assert "scripted_core.py" in where
        await running


async def test_what_still_runs_at_a_close_is_cancelled_and_told() -> None:
    async with resident() as engine:
        running = asyncio.create_task(replies_of(engine, "ada", fill("1", ENDLESS)))
        await asyncio.sleep(0.05)
        engine.close()
        assert isinstance((await running)[-1], Cancelled | Failed)
