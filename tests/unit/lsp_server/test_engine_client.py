"""`EngineProcess` against engines that are scripted down to the byte, in this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.protocol.address import make_private
from engine.protocol.errors import EngineError
from engine.protocol.framing import frame
from engine.protocol.messages import (
    Cancel,
    Cancelled,
    Done,
    Draft,
    Failed,
    Fill,
    Loading,
    Ready,
    Reply,
)
from lsp_server.engine_client import EngineGone, EngineProcess, Patience
from lsp_server.engine_connection import connect
from tests.fakes.played_engine import (
    FACTS,
    NO_ENGINE,
    QUICK,
    STATS,
    Peer,
    address_in,
    client_in,
    fill,
    played,
    until_left,
)
from tests.fakes.raw_client import short_home

pytestmark = pytest.mark.asyncio


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


async def test_before_anything_it_is_off(home: Path) -> None:
    async with client_in(home) as engine:
        assert (engine.state, engine.facts) == ("off", None)
        with pytest.raises(EngineGone):
            await engine.status()


async def test_whatever_it_is_doing_closing_ends_it(home: Path) -> None:
    # In the middle of a try, all of which fail at once: the engine that was started never listens.
    make_private(address_in(home))
    idle = [sys.executable, "-c", "import time; time.sleep(10)"]
    engine = EngineProcess(
        "scripted", command=idle, env={"LACUNA_HOME": str(home)}, patience=replace(QUICK, poll_s=0.0)
    )
    for number in range(200):
        engine.start()
        for _ in range(number % 40):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await engine.close()
        assert engine.state == "off"


async def test_a_request_while_it_starts_or_loads_fails_at_once(home: Path) -> None:
    may_load = asyncio.Event()
    loading = asyncio.Event()

    async def play(peer: Peer) -> None:
        peer.say(Loading("weights", 0.5))
        await may_load.wait()
        await until_left(peer)

    async with played(home, play), client_in(home) as engine:
        states: list[str] = []
        engine.on_state(lambda state, message: states.append(state))
        engine.on_loading(lambda _: loading.set())
        with pytest.raises(EngineError) as caught:
            await engine.submit(fill())
        assert (caught.value.kind, engine.state) == ("loading", "starting")
        await loading.wait()
        with pytest.raises(EngineError) as caught:
            await engine.submit(fill())
        assert caught.value.kind == "loading"
        may_load.set()
        assert await engine.ready() == FACTS
        assert (states, engine.facts) == (["loading", "ready"], FACTS)
        await engine.close()


async def test_answers_find_their_requests_in_any_order(home: Path) -> None:
    async def play(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        first, second = await peer.hear(), await peer.hear()
        assert isinstance(first, Fill)
        assert isinstance(second, Fill)
        peer.say(Draft(second.id, "dr", 1, 1, 2), Done("nobody", "", STATS), Cancelled("nobody"))
        peer.say(Done(second.id, second.id, STATS), Draft(second.id, "late", 1, 1, 2), Done(first.id, first.id, STATS))
        assert await peer.hear() is None

    async with played(home, play), client_in(home) as engine:
        await engine.ready()
        drafts: list[str] = []
        one = asyncio.create_task(engine.submit(fill("one")))
        two = asyncio.create_task(engine.submit(fill("two"), lambda draft: drafts.append(draft.text)))
        assert [(await task).text for task in (one, two)] == ["one", "two"]
        assert drafts == ["dr"]
        await engine.close()


async def test_cancelling_the_task_cancels_the_job_and_the_late_answer_is_dropped(home: Path) -> None:
    began = asyncio.Event()

    async def play(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        assert await peer.hear() == fill("a")
        began.set()
        assert await peer.hear() == Cancel("a")
        peer.say(Draft("a", "late", 1, 1, 2), Done("a", "late", STATS))
        assert await peer.hear() == fill("b")
        peer.say(Done("b", "b", STATS))
        assert await peer.hear() is None

    async with played(home, play), client_in(home) as engine:
        await engine.ready()
        drafts: list[Draft] = []
        task = asyncio.create_task(engine.submit(fill("a"), drafts.append))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(EngineError, match="still running"):
            await engine.submit(fill("a"))
        assert (await engine.submit(fill("b"))).text == "b"
        assert drafts == []
        await engine.close()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Failed("a", "window_exceeded", "too long", "shorten"), "window_exceeded"),
        (Failed("a", "from the future", "what", "how"), "internal"),
        (Cancelled("a"), "draining"),
    ],
)
async def test_every_outcome_that_is_no_result_is_an_error_with_a_kind(home: Path, reply: Reply, kind: str) -> None:
    async def play(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        await peer.hear()
        peer.say(reply)
        assert await peer.hear() is None

    async with played(home, play), client_in(home) as engine:
        await engine.ready()
        with pytest.raises(EngineError) as caught:
            await engine.submit(fill("a"))
        assert caught.value.kind == kind
        await engine.close()


async def test_a_text_that_cannot_be_sent_fails_and_leaves_the_connection_whole(home: Path) -> None:
    async def play(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        assert await peer.hear() == fill("a")
        peer.say(Done("a", "", STATS))
        assert await peer.hear() is None

    async with played(home, play), client_in(home) as engine:
        await engine.ready()
        with pytest.raises(EngineError) as caught:
            await engine.submit(Fill("a", "python", "\ud800", ""))
        assert caught.value.kind == "bad_request"
        await engine.submit(fill("a"))
        await engine.close()


@pytest.mark.parametrize("last", [b"", frame(b"garbage"), b"\x00\x00\x10\x00half"], ids=["end", "garbage", "cut"])
async def test_a_lost_engine_fails_what_waits_and_is_found_again(home: Path, last: bytes) -> None:
    async def die(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        await peer.hear()
        peer.writer.write(last)

    async def live(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        assert await peer.hear() == fill("a")
        peer.say(Done("a", "again", STATS))
        assert await peer.hear() is None

    async with played(home, die, live), client_in(home) as engine:
        states: list[str] = []
        await engine.ready()
        engine.on_state(lambda state, message: states.append(state))
        with pytest.raises(EngineGone):
            await engine.submit(fill("a"))
        assert (await engine.submit(fill("a"), wait=True)).text == "again"
        assert states == ["starting", "ready"]
        await engine.close()


async def test_an_engine_that_leaves_in_order_is_not_started_until_it_is_needed(home: Path) -> None:
    left = asyncio.Event()

    async def leave(peer: Peer) -> None:
        peer.say(Ready(FACTS), Failed("", "draining", "the engine is leaving", "ask again"))

    async with played(home, leave, until_left), client_in(home) as engine:
        engine.on_state(lambda state, message: left.set() if state == "off" else None)
        engine.start()
        await left.wait()
        assert engine.facts is None
        with pytest.raises(EngineError) as caught:
            await engine.submit(fill())
        assert caught.value.kind == "loading"
        assert await engine.ready() == FACTS
        await engine.close()


async def test_a_missing_model_is_tried_again_only_when_asked(home: Path) -> None:
    async def missing(peer: Peer) -> None:
        peer.say(Loading("weights", 0.0), Failed("", "model_missing", "no file", "pull it"))

    async with played(home, missing, until_left), client_in(home) as engine:
        with pytest.raises(EngineError, match="no file"):
            await engine.ready()
        told: list[tuple[str, str]] = []
        engine.on_state(lambda state, message: told.append((state, message)))
        for _ in range(2):
            with pytest.raises(EngineError, match="no file") as caught:
                await engine.submit(fill(), wait=True)
            assert caught.value.kind == "model_missing"
        assert (engine.state, told) == ("failed", [])
        failure = engine.failure
        assert failure is not None
        assert (failure.message, failure.remedy) == ("no file", "pull it")
        engine.start()
        assert await engine.ready() == FACTS
        assert engine.failure is not failure
        # The one that answered was there already: nothing was started.
        assert [state for state, _ in told] == ["ready"]
        await engine.close()


async def test_an_engine_that_speaks_another_version_is_a_failure_a_person_can_act_on(home: Path) -> None:
    async def refuse(peer: Peer) -> None:
        peer.say(Failed("", "protocol_version", "it speaks 2", "restart"))

    async with played(home, refuse), client_in(home) as engine:
        with pytest.raises(EngineError, match="it speaks 2") as caught:
            await engine.ready()
        assert (caught.value.kind, caught.value.remedy) == ("protocol_version", "restart")


async def test_listeners_that_fault_cost_nothing(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def play(peer: Peer) -> None:
        peer.say(Ready(FACTS))
        await peer.hear()
        peer.say(Draft("a", "SECRET", 1, 1, 2), Draft("a", "SECRET", 1, 1, 2), Done("a", "t", STATS))
        assert await peer.hear() is None

    def fault(*_: object) -> None:
        raise ValueError("SECRET")

    async with played(home, play), client_in(home) as engine:
        await engine.ready()
        assert (await engine.submit(fill("a"), fault)).text == "t"
        engine.on_state(fault)
        await engine.close()
    assert caplog.text.count("draft listener") == 1
    assert "SECRET" not in caplog.text.split("draft listener")[1].split("\n")[0]


async def test_a_child_that_leaves_at_once_is_reported_with_its_last_words(home: Path) -> None:
    words = """import sys; sys.exit('engine failed: {"kind": "model_missing", "message": "m", "remedy": "r"}')"""
    env = {"LACUNA_HOME": str(home)}
    for command, kind, says in (
        (NO_ENGINE, "internal", "status 1 before it served: no engine here"),
        ([sys.executable, "-c", words], "model_missing", "m"),
        (["/no/such/program"], "internal", "cannot be started"),
    ):
        engine = EngineProcess("scripted", command=command, env=env, patience=QUICK)
        with pytest.raises(EngineError, match=says) as caught:
            await engine.ready()
        assert (caught.value.kind, engine.state) == (kind, "failed")
        await engine.close()
    log = (home / "state" / "engine-scripted.log").read_text()
    assert log.startswith("no engine here\n")


async def test_pauses_grow_to_a_limit_and_are_long_where_a_person_must_act() -> None:
    pauses = [Patience().pause(failures, "internal") for failures in range(1, 100)]
    assert pauses[:3] == [0.5, 1.0, 2.0]
    assert pauses[-1] == 30.0
    assert Patience().pause(1, "model_missing") == 300.0


async def test_nobody_there_is_said_so(home: Path) -> None:
    with pytest.raises(EngineGone, match="no engine for scripted is running"):
        await connect(address_in(home), "test")


async def test_a_folder_that_cannot_be_trusted_is_not_connected_to(home: Path) -> None:
    address = address_in(home)
    address.directory.chmod(0o755)
    async with client_in(home) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.ready()
    assert caught.value.kind == "unsafe_address"


async def test_closing_twice_and_starting_again_are_fine(home: Path) -> None:
    async with played(home, until_left, until_left), client_in(home) as engine:
        await engine.close()
        for _ in range(2):
            engine.start()
            engine.start()
            await engine.ready()
            await engine.close()
            await engine.close()
            assert engine.state == "off"
