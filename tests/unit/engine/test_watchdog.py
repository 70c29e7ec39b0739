"""A step that does not end: noticed, told to who waits, left behind."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.protocol.messages import Done, Draft, Failed
from engine.watchdog import PASSES_IN_A_STEP, SHORTEST_LIMIT_S, step_limit_s, until_stuck, whereabouts
from tests.fakes.raw_client import PATIENCE_S, short_home
from tests.fakes.running_service import HangingCore, failed_kind, fill, greeted, running
from tests.fakes.scripted_core import ScriptedCore

FACTS = ScriptedCore().facts


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.mark.parametrize(
    ("wanted_s", "forward_ms", "limit_s"),
    [
        (7.0, ((1, 1.0),), 7.0),
        (0.0, (), SHORTEST_LIMIT_S),
        (0.0, ((1, 20.0), (256, 900.0)), SHORTEST_LIMIT_S),
        (0.0, ((1, 20_000.0), (256, 80_000.0)), PASSES_IN_A_STEP * 80.0),
    ],
)
def test_a_step_may_take_many_times_the_dearest_pass(
    wanted_s: float, forward_ms: tuple[tuple[int, float], ...], limit_s: float
) -> None:
    assert step_limit_s(wanted_s, replace(FACTS, forward_ms=forward_ms)) == limit_s


@pytest.mark.asyncio
async def test_only_a_pulse_that_stands_still_is_stuck() -> None:
    beats = iter([1, 2, 3, None, None, *range(4, 100)])
    alive = asyncio.create_task(until_stuck(lambda: next(beats), 0.02))
    stuck = asyncio.create_task(until_stuck(lambda: 5, 0.02))
    async with asyncio.timeout(PATIENCE_S):
        await stuck
    assert not alive.done()
    alive.cancel()


def test_where_a_thread_hangs_is_told_without_what_it_holds() -> None:
    gate, began = threading.Event(), threading.Event()

    def hang_here(text: str) -> None:
        began.set()
        gate.wait(PATIENCE_S)

    thread = threading.Thread(target=hang_here, args=("SECRET",))
    thread.start()
    began.wait(PATIENCE_S)
    told = whereabouts(thread.ident)
    gate.set()
    thread.join()
    assert "hang_here" in told
    assert "SECRET" not in told
    assert whereabouts(thread.ident) == whereabouts(None) == "an unknown place"


@pytest.mark.asyncio
async def test_a_step_that_hangs_ends_the_engine_and_everybody_is_told(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    core = HangingCore()
    config = EngineConfig(model="scripted", step_limit_s=0.2)
    with caplog.at_level(logging.ERROR):
        async with running(home, lambda progress: core, config) as engine, greeted(engine.address) as client:
            async with greeted(engine.address) as other:
                client.send(fill("before"))
                assert isinstance(await client.receive(), Done)
                client.send(fill("hangs", wants_drafts=True))
                assert isinstance(await client.receive(), Draft)
                client.send(fill("waits"))
                other.send(fill("waits"))
                replies, told = await client.receive_all(), await other.receive_all()
            core.may_end.set()
            assert await engine.status_at_end() == 1
            assert not engine.address.path.exists()
    assert [(reply.id, failed_kind(reply)) for reply in replies if isinstance(reply, Failed)] == [
        ("hangs", "gone"),
        ("waits", "gone"),
        ("", "gone"),
    ]
    assert [reply.id for reply in told if isinstance(reply, Failed)] == ["waits", ""]
    (record,) = [record for record in caplog.records if "has not ended" in record.message]
    assert "running_service.py" in record.message


@pytest.mark.asyncio
async def test_slow_steps_and_rest_are_no_hang(home: Path) -> None:
    config = EngineConfig(model="scripted", step_limit_s=0.4)
    async with running(home, config=config) as engine, greeted(engine.address) as client:
        client.send(fill("slow", "steps=10 delay=0.06"))
        assert isinstance(await client.receive(), Done)
        await asyncio.sleep(0.6)
        client.send(fill("again"))
        assert isinstance(await client.receive(), Done)
