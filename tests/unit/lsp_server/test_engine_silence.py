"""`EngineProcess` and an engine that says nothing, or that an older version left running."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.protocol.messages import Done, Ready, Shutdown, Status, StatusReport
from lsp_server import engine_connection
from lsp_server.engine_client import EngineGone
from lsp_server.engine_connection import EngineMute, Silence, connect
from tests.fakes.played_engine import FACTS, QUICK, STATS, Peer, address_in, client_in, fill, played, until_left
from tests.fakes.raw_client import short_home

pytestmark = pytest.mark.asyncio
REPORT = StatusReport("ready", FACTS, 1.0, 0.0, 0.0, 1, 0, 0, 0, 0, 1.0)
HASTY = replace(QUICK, silence=Silence(asked_after_s=0.05, lost_after_s=0.15, look_every_s=0.01))


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


async def test_an_engine_that_says_nothing_is_asked_and_then_given_up(home: Path) -> None:
    lost = asyncio.Event()

    async def mute(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        assert await peer.hear() == fill("a")
        assert await peer.hear() == Status()
        assert await peer.hear() is None

    async with played(home, mute, until_left), client_in(home, HASTY) as engine:
        await engine.ready()
        engine.on_state(lambda state, _: lost.set() if state == "starting" else None)
        with pytest.raises(EngineMute, match="does not answer") as caught:
            await engine.submit(fill("a"))
        assert (caught.value.kind, caught.value.pid) == ("gone", FACTS.pid)
        await lost.wait()
        assert await engine.ready() == FACTS
        await engine.close()


async def test_one_that_takes_the_line_and_says_nothing_is_mute_and_one_that_drops_it_is_gone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_connection, "GREETING_LIMIT_S", 0.1)

    async def nothing(peer: Peer) -> None:
        assert await peer.hear() is None

    async def drop(_: Peer) -> None:
        return

    async with played(home, nothing, drop):
        with pytest.raises(EngineMute, match="the engine for scripted runs but does not answer"):
            await connect(address_in(home), "test")
        with pytest.raises(EngineGone) as caught:
            await connect(address_in(home), "test")
        assert not isinstance(caught.value, EngineMute)


async def test_an_engine_that_works_for_long_and_answers_when_asked_is_waited_for(home: Path) -> None:
    asked = 0

    async def busy(peer: Peer) -> None:
        nonlocal asked
        peer.say(Ready(FACTS))
        assert await peer.hear() == fill("a")
        while asked < 5:
            assert await peer.hear() == Status()
            asked += 1
            peer.say(REPORT)
        peer.say(Done("a", "at last", STATS))
        assert await peer.hear() is None

    async with played(home, busy), client_in(home, HASTY) as engine:
        await engine.ready()
        assert (await engine.submit(fill("a"))).text == "at last"
        assert asked == 5
        # Nobody waits now, so nobody asks.
        await asyncio.sleep(0.2)
        await engine.close()


async def test_reports_come_to_who_asked_for_them_in_order(home: Path) -> None:
    async def play(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        for number in range(3):
            assert await peer.hear() == Status()
            if number == 0:
                first_asked.set()
        peer.say(*(replace(REPORT, jobs_done=number) for number in range(3)))
        assert await peer.hear() is None

    first_asked = asyncio.Event()
    async with played(home, play), client_in(home) as engine:
        await engine.ready()
        given_up = asyncio.create_task(engine.status())
        await first_asked.wait()
        given_up.cancel()
        reports = await asyncio.gather(engine.status(), engine.status())
        assert [report.jobs_done for report in reports] == [1, 2]
        await engine.close()


async def test_an_older_engine_finishes_its_work_makes_way_and_is_not_started_again(home: Path) -> None:
    running = iter([2, 1, 0])

    async def old(peer: Peer) -> None:
        peer.say(Ready(replace(FACTS, engine_version="0.0.1")))
        for count in running:
            assert await peer.hear() == Status()
            peer.say(replace(REPORT, jobs_running=count))
        assert await peer.hear() == Shutdown()

    async with played(home, old, until_left), client_in(home) as engine:
        told: list[tuple[str, str]] = []
        engine.on_state(lambda state, message: told.append((state, message)))
        assert await engine.ready() == FACTS
        assert ("starting", "replacing the engine of version 0.0.1") in told
        assert [state for state, _ in told].count("ready") == 1
        await engine.close()
