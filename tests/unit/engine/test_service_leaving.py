"""What the service makes of hostile bytes, and how it leaves."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from engine.config import EngineConfig
from engine.protocol.framing import HEADER, MAX_FRAME_BYTES, MAX_HELLO_BYTES, frame
from engine.protocol.messages import (
    Cancel,
    Cancelled,
    Done,
    Draft,
    Failed,
    Shutdown,
    Status,
    StatusReport,
)
from tests.fakes.raw_client import PATIENCE_S, raw_client, short_home
from tests.fakes.running_service import ENDLESS, failed_kind, fill, greeted, running

pytestmark = pytest.mark.asyncio


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


# Hostile bytes


async def test_an_oversized_frame_ends_its_connection_only(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client, greeted(engine.address) as other:
        client.send_bytes(HEADER.pack(MAX_FRAME_BYTES + 1))
        assert failed_kind(await client.receive()) == "bad_frame"
        assert await client.receive() is None
        other.send(fill("a"))
        assert isinstance(await other.receive(), Done)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", HEADER.pack(MAX_HELLO_BYTES + 1), frame(b"\xc1"), b"\0"])
async def test_garbage_instead_of_a_greeting(home: Path, data: bytes) -> None:
    async with running(home) as engine:
        async with raw_client(engine.address) as client:
            client.send_bytes(data)
            if len(data) < HEADER.size:
                client.writer.write_eof()
            assert failed_kind(await client.receive()) == "bad_frame"
            assert await client.receive() is None
        async with greeted(engine.address):
            pass


async def test_a_frame_that_is_no_message_is_answered_and_passed_over(home: Path) -> None:
    unknown = msgpack.packb(["explode", {"id": "x"}])
    async with running(home) as engine, greeted(engine.address) as client:
        client.send_bytes(frame(b"garbage") + frame(unknown))
        client.send(fill("a"))
        assert failed_kind(await client.receive()) == "bad_frame"
        failed = await client.receive()
        assert isinstance(failed, Failed)
        assert (failed.id, failed.kind) == ("x", "unknown_message")
        assert isinstance(await client.receive(), Done)


# Status and leaving


async def test_status_has_real_numbers(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client, greeted(engine.address):
        client.send(fill("a"), fill("b", "fail=window_exceeded"), fill("c", ENDLESS), Cancel("c"))
        assert {type(await client.receive()) for _ in range(3)} == {Done, Failed, Cancelled}
        client.send(Status())
        report = await client.receive()
        assert isinstance(report, StatusReport)
        counts = (report.clients, report.jobs_running, report.jobs_done, report.jobs_cancelled, report.jobs_failed)
        assert counts == (2, 0, 1, 1, 1)
        assert (report.state, report.facts, report.idle_limit_s) == ("ready", engine.core.facts, 1800.0)
        assert 10 < report.memory_mib < 100_000
        assert 0 <= report.idle_s <= report.uptime_s < PATIENCE_S


async def test_a_shutdown_answers_every_job_and_then_says_goodbye(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        client.send(fill("a", ENDLESS, wants_drafts=True))
        assert isinstance(await client.receive(), Draft)
        client.send(Shutdown(), fill("late"))
        replies = [reply for reply in await client.receive_all() if not isinstance(reply, Draft)]
        assert Cancelled("a") in replies
        assert sorted(reply.id for reply in replies if isinstance(reply, Failed)) == ["", "late"]
        assert {failed_kind(reply) for reply in replies if isinstance(reply, Failed)} == {"draining"}
        assert len(replies) == 3
        assert await engine.status_at_end() == 0
        assert not engine.address.path.exists()


async def test_an_idle_engine_leaves_although_clients_are_connected(home: Path) -> None:
    config = EngineConfig(model="scripted", idle_limit_s=0.2)
    async with running(home, config=config) as engine, greeted(engine.address) as client:
        assert [failed_kind(reply) for reply in await client.receive_all()] == ["draining"]
        assert await engine.status_at_end() == 0


async def test_a_running_job_is_not_idleness(home: Path) -> None:
    config = EngineConfig(model="scripted", idle_limit_s=0.1)
    async with running(home, config=config) as engine, greeted(engine.address) as client:
        client.send(fill("a", "steps=40 delay=0.01"))
        assert isinstance(await client.receive(), Done)


async def test_a_socket_that_was_removed_is_made_anew_and_who_is_connected_stays(home: Path) -> None:
    config = EngineConfig(model="scripted", idle_limit_s=4.0)
    async with running(home, config=config) as engine, greeted(engine.address) as client:
        client.send(fill("long", ENDLESS, wants_drafts=True))
        assert isinstance(await client.receive(), Draft)
        engine.address.path.unlink()
        async with asyncio.timeout(PATIENCE_S):
            while not engine.address.path.exists():
                assert isinstance(await client.receive(), Draft)
        assert stat.S_IMODE(engine.address.path.stat().st_mode) == 0o600
        async with greeted(engine.address) as other:
            other.send(fill("a"))
            assert isinstance(await other.receive(), Done)
        client.send(Cancel("long"))
        while not isinstance(reply := await client.receive(), Cancelled):
            assert isinstance(reply, Draft)
    assert not engine.address.path.exists()


async def test_an_engine_nobody_can_find_leaves(home: Path) -> None:
    config = EngineConfig(model="scripted", idle_limit_s=4.0)
    running_one = running(home, config=config, may_serve=lambda: False)
    async with running_one as engine, greeted(engine.address) as client:
        engine.address.path.unlink()
        assert [failed_kind(reply) for reply in await client.receive_all()] == ["draining"]
        assert await engine.status_at_end() == 0


async def test_what_somebody_put_in_the_place_of_the_socket_stays(home: Path) -> None:
    config = EngineConfig(model="scripted", idle_limit_s=4.0)
    async with running(home, config=config) as engine, greeted(engine.address) as client:
        engine.address.path.unlink()
        engine.address.path.write_text("somebody's file")
        assert [failed_kind(reply) for reply in await client.receive_all()] == ["draining"]
        assert await engine.status_at_end() == 0
    assert engine.address.path.read_text() == "somebody's file"
