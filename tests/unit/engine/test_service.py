"""The engine over a real socket, with a scripted core, in this process."""

from __future__ import annotations

import logging
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.job import Core, Run
from engine.ledger import MAX_JOBS_PER_CLIENT
from engine.protocol.address import engine_address, make_private, read_endpoint
from engine.protocol.errors import EngineError
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Cancelled,
    Done,
    Draft,
    Failed,
    Fill,
    Hello,
    Loading,
    Ready,
    Rewrite,
    Shutdown,
    Status,
    StatusReport,
)
from engine.service import Service
from tests.fakes.raw_client import PATIENCE_S, raw_client, short_home
from tests.fakes.running_service import ENDLESS, SECRET, failed_kind, fill, greeted, running
from tests.fakes.scripted_core import ScriptedCore

pytestmark = pytest.mark.asyncio


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


# The handshake


async def test_a_greeting_is_answered_with_the_facts(home: Path) -> None:
    async with running(home) as engine, raw_client(engine.address) as client:
        assert (await client.greet()).facts == engine.core.facts


async def test_another_protocol_version_is_told_so_and_let_go(home: Path) -> None:
    async with running(home) as engine, raw_client(engine.address) as client:
        client.send(Hello(PROTOCOL_VERSION + 1, "future"))
        assert failed_kind(await client.receive()) == "protocol_version"
        assert await client.receive() is None


@pytest.mark.parametrize("first", [Status(), fill("a"), Shutdown()])
async def test_nothing_comes_before_the_greeting(home: Path, first: Status | Fill | Shutdown) -> None:
    async with running(home) as engine:
        async with raw_client(engine.address) as client:
            client.send(first)
            assert failed_kind(await client.receive()) == "bad_request"
            assert await client.receive() is None
        async with greeted(engine.address):
            assert engine.core.computed == {}


async def test_a_second_greeting_is_refused_and_harmless(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        client.send(Hello(PROTOCOL_VERSION, "again"), fill("a"))
        assert failed_kind(await client.receive()) == "bad_request"
        assert isinstance(await client.receive(), Done)


async def test_tcp_asks_for_the_token(home: Path) -> None:
    config = EngineConfig(model="scripted", transport="tcp")
    async with running(home, config=config) as engine:
        endpoint = read_endpoint(engine.address.path)
        assert stat.S_IMODE(engine.address.path.stat().st_mode) == 0o600
        for wrong in ("", "x", endpoint.token[:-1]):
            async with raw_client(engine.address) as client:
                client.send(Hello(PROTOCOL_VERSION, "thief", wrong), fill("a"))
                assert failed_kind(await client.receive()) == "bad_token"
                assert await client.receive() is None
        async with raw_client(engine.address) as client:
            await client.greet(endpoint.token)
            client.send(fill("a"))
            assert isinstance(await client.receive(), Done)
    assert not engine.address.path.exists()


async def test_the_socket_is_its_users_alone(home: Path) -> None:
    async with running(home) as engine:
        assert stat.S_IMODE(engine.address.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(engine.address.directory.stat().st_mode) == 0o700
    assert not engine.address.path.exists()


async def test_what_a_dead_engine_left_is_replaced_and_what_nobody_left_is_not(home: Path) -> None:
    address = engine_address("scripted", {"LACUNA_HOME": str(home)})
    make_private(address)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(address.path))
    async with running(home) as engine, greeted(engine.address):
        pass
    address.path.write_text("somebody's file")
    with pytest.raises(EngineError, match="in the way"):
        await Service(EngineConfig(model="scripted"), address, lambda progress: ScriptedCore()).open()
    assert address.path.read_text() == "somebody's file"


# Loading


class Gate:
    """A core factory that loads until the test lets it end."""

    def __init__(self, end: Callable[[], Core]) -> None:
        self.may_end = threading.Event()
        self._end = end

    def __call__(self, progress: Callable[[str, float], None]) -> Core:
        progress("weights", 0.25)
        assert self.may_end.wait(PATIENCE_S)
        return self._end()


async def test_while_it_loads_requests_fail_at_once_and_status_answers(home: Path) -> None:
    gate = Gate(ScriptedCore)
    config = EngineConfig(model="scripted", diffusion_share=25.0)
    async with running(home, gate, config) as engine, raw_client(engine.address) as client:
        client.send(Hello(PROTOCOL_VERSION, "early"))
        while (reply := await client.receive()) != Loading("weights", 0.25):
            assert isinstance(reply, Loading)
        client.send(fill("a"), Status())
        failed, report = await client.receive(), await client.receive()
        assert failed_kind(failed) == "loading"
        assert isinstance(report, StatusReport)
        assert (report.state, report.facts, report.jobs_failed) == ("loading", None, 0)
        assert report.diffusion_share == 25.0, "what was configured, before the core has told anything"
        gate.may_end.set()
        assert isinstance(await client.receive(), Ready)
        client.send(fill("a"))
        assert isinstance(await client.receive(), Done)


async def test_a_model_that_cannot_be_loaded_is_told_to_everybody_and_ends_the_engine(home: Path) -> None:
    def missing() -> Core:
        raise EngineError("model_missing", "no such file", "lacuna models pull scripted")

    gate = Gate(missing)
    async with running(home, gate) as engine:
        async with raw_client(engine.address) as one, raw_client(engine.address) as two:
            for client in (one, two):
                client.send(Hello(PROTOCOL_VERSION, "early"))
                assert isinstance(await client.receive(), Loading)
            gate.may_end.set()
            for client in (one, two):
                replies = await client.receive_all()
                assert replies[-1] == Failed("", "model_missing", "no such file", "lacuna models pull scripted")
        assert await engine.status_at_end() == 1
        assert not engine.address.path.exists()


async def test_the_time_of_loading_is_not_idleness(home: Path) -> None:
    now = [0.0]

    def slow(progress: Callable[[str, float], None]) -> Core:
        now[0] += 1000.0
        return ScriptedCore()

    async with running(home, slow, clock=lambda: now[0]) as engine, greeted(engine.address) as client:
        client.send(Status())
        report = await client.receive()
        assert isinstance(report, StatusReport)
        assert (report.uptime_s, report.idle_s) == (1000.0, 0.0)


# Jobs


async def test_drafts_come_to_who_asks_and_every_job_has_one_answer(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        client.send(fill("a", "steps=3 text=abcdef", wants_drafts=True))
        replies = [await client.receive() for _ in range(4)]
        assert [reply.text for reply in replies[:3] if isinstance(reply, Draft)] == ["ab", "abcd", "abcdef"]
        assert isinstance(replies[3], Done)
        client.send(Rewrite("b", "python", "", "x", "", "steps=1 text=new"))
        done = await client.receive()
        assert isinstance(done, Done)
        assert (done.id, done.text) == ("b", "new")


async def test_a_cancel_stops_the_steps(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        client.send(fill("a", ENDLESS, wants_drafts=True))
        assert isinstance(await client.receive(), Draft)
        client.send(Cancel("a"), Cancel("a"), Cancel("never was"))
        while not isinstance(reply := await client.receive(), Cancelled):
            assert isinstance(reply, Draft)
        computed = engine.core.computed["a"]
        client.send(fill("b", "steps=5"))
        assert isinstance(await client.receive(), Done)
        assert engine.core.computed == {"a": computed, "b": 5}
        assert engine.core.abandoned == ["a"]


async def test_a_client_that_leaves_cancels_its_jobs(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as witness:
        async with greeted(engine.address) as client:
            client.send(fill("a", ENDLESS, wants_drafts=True), Rewrite("r", "python", "", "", "", ENDLESS))
            assert isinstance(await client.receive(), Draft)
        while True:
            witness.send(Status())
            report = await witness.receive()
            assert isinstance(report, StatusReport)
            if report.jobs_cancelled == 2:
                break
        assert (report.jobs_running, report.clients) == (0, 1)
        computed = dict(engine.core.computed)
        witness.send(fill("b", "steps=3"))
        assert isinstance(await witness.receive(), Done)
        assert engine.core.computed == {**computed, "b": 3}


async def test_two_clients_may_use_the_same_id(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as one, greeted(engine.address) as two:
        one.send(fill("a", "steps=20 delay=0.001 text=one"))
        two.send(fill("a", "steps=20 delay=0.001 text=two"))
        for client, text in ((one, "one"), (two, "two")):
            done = await client.receive()
            assert isinstance(done, Done)
            assert done.text == text


async def test_an_id_in_use_is_refused_and_may_be_used_again_later(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        client.send(fill("a", ENDLESS), fill("a"), Cancel("a"), fill(""))
        assert failed_kind(await client.receive()) == "bad_request"
        assert {type(await client.receive()) for _ in range(2)} == {Cancelled, Failed}
        client.send(fill("a"))
        assert isinstance(await client.receive(), Done)


async def test_one_client_cannot_pile_up_jobs(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        client.send(*(fill(str(n), ENDLESS) for n in range(MAX_JOBS_PER_CLIENT + 1)))
        reply = await client.receive()
        assert isinstance(reply, Failed)
        assert (reply.id, reply.kind) == (str(MAX_JOBS_PER_CLIENT), "bad_request")


@pytest.mark.parametrize(("script", "kind"), [("fail=window_exceeded", "window_exceeded"), ("fail=crash", "internal")])
async def test_a_failed_job_is_answered_and_the_engine_goes_on(
    home: Path, script: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with running(home) as engine, greeted(engine.address) as client:
            client.send(fill("a", f"{script} text={SECRET}"))
            assert failed_kind(await client.receive()) == kind
            client.send(fill("b"), Status())
            assert isinstance(await client.receive(), Done | StatusReport)
            assert isinstance(await client.receive(), Done | StatusReport)
    assert SECRET not in caplog.text


class _SurrogateCore(ScriptedCore):
    """Its result cannot be written as bytes."""

    def start(self, request: Fill | Rewrite) -> Run:
        done = yield from super().start(request)
        return Done(done.id, "\ud800", done.stats)


async def test_a_result_that_cannot_be_sent_is_still_an_answer(home: Path) -> None:
    async with running(home, lambda progress: _SurrogateCore()) as engine, greeted(engine.address) as client:
        client.send(fill("a"))
        assert failed_kind(await client.receive()) == "internal"
