"""A team's engine as the language server's `Engine`, over real HTTP: a gate with a scripted core, and worse."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER
from engine.protocol.http import GOES_ON, MEDIA_TYPE
from engine.protocol.messages import Done, Draft, Failed, Fill, Ready, Reply, Rewrite, Stats
from engine.team.gate import going_on
from engine.team.quotas import Quota
from lsp_server.engine_client import Patience
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.factory import engine_of
from lsp_server.remote.lacuna_http import LacunaHttp
from lsp_server.remote.remote_engine import RemoteEngine, Retries
from tests.fakes.team_gate import PATIENCE_S, Serving, serving

ENDLESS = "steps=0 delay=0.001"
QUICK = Patience(first_retry_s=0.01, longest_retry_s=0.05, lasting_retry_s=0.05, loading_retry_s=0.02)
STATS = Stats("causal", "scripted", "end", 1, 1, 1, 0, 0.0, 0.0, 0.0)

pytestmark = pytest.mark.asyncio

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def engine_at(url: str, tmp_path: Path, token: str, model: str = "") -> AsyncIterator[RemoteEngine]:
    file = tmp_path / "token"
    file.write_text(token)
    file.chmod(0o600)
    choice = EngineChoice(url, "lacuna", model, str(file), PATIENCE_S)
    engine = RemoteEngine(choice, LacunaHttp(), patience=QUICK, retries=Retries(4, 0.01, 0.02))
    try:
        yield engine
    finally:
        await engine.close()


@contextlib.asynccontextmanager
async def greeted(served: Serving, tmp_path: Path) -> AsyncIterator[RemoteEngine]:
    async with engine_at(served.url, tmp_path, served.token) as engine:
        engine.start()
        await until(lambda: engine.state == "ready")
        yield engine


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


def fill(name: str = "1", script: str = "steps=3 text=abcdef", **changes: object) -> Fill:
    return Fill(name, "python", script, "", wants_drafts=True, **changes)  # type: ignore[arg-type]


async def test_it_fills_and_rewrites_with_drafts(tmp_path: Path) -> None:
    drafts: list[Draft] = []
    async with serving() as served, greeted(served, tmp_path) as engine:
        done = await engine.submit(fill("7"), drafts.append)
        rewritten = await engine.submit(Rewrite("8", "python", "", "x", "", "text=new"))
        assert engine.facts is not None
        assert engine.facts.model == "scripted"
        report = await engine.status()
    assert (done.id, done.text, rewritten.text) == ("7", "abcdef", "new")
    assert [draft.text for draft in drafts] == ["ab", "abcd", "abcdef"]
    assert report.jobs_done == 2


async def test_the_settings_lead_to_it() -> None:
    assert isinstance(engine_of(EngineChoice("http://127.0.0.1:9", "lacuna"), "local"), RemoteEngine)


async def test_many_jobs_at_once_each_get_their_own(tmp_path: Path) -> None:
    async with serving() as served, greeted(served, tmp_path) as engine:
        words = [f"word{number}" for number in range(32)]
        done = await asyncio.gather(*(engine.submit(fill(word, f"steps=4 text={word}")) for word in words))
    assert [each.text for each in done] == words


async def test_cancelling_the_waiting_task_stops_the_work(tmp_path: Path) -> None:
    async with serving() as served, greeted(served, tmp_path) as engine:
        begun = asyncio.Event()
        task = asyncio.create_task(engine.submit(fill("1", ENDLESS), lambda draft: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: bool(served.core.abandoned))
        assert (await engine.submit(fill("2"))).text == "abcdef"


@pytest.mark.parametrize("kind", ["window_exceeded", "round_trip", "out_of_memory"])
async def test_a_failure_comes_as_the_engine_put_it(kind: str, tmp_path: Path) -> None:
    async with serving() as served, greeted(served, tmp_path) as engine:
        with pytest.raises(EngineError, match="scripted failure") as failed:
            await engine.submit(fill("1", f"fail={kind}"))
        assert (failed.value.kind, engine.state) == (kind, "ready")


async def test_a_wrong_token_is_told_with_what_to_do(tmp_path: Path) -> None:
    async with serving() as served, engine_at(served.url, tmp_path, "wrong") as engine:
        engine.start()
        await until(lambda: engine.failure is not None)
        assert engine.failure is not None
        assert engine.failure.kind == "bad_token"
        assert "engine.tokenFile" in engine.failure.remedy
        # A new one in the file is taken without a word.
        (tmp_path / "token").write_text(served.token)
        engine.start()
        await until(lambda: engine.state == "ready")


async def test_a_team_s_engine_that_loads_is_on_its_way_and_waited_for(tmp_path: Path) -> None:
    async with serving() as served, engine_at(served.url, tmp_path, served.token) as engine:
        served.pool.fault = EngineError("loading", "the engine has just started", "ask again in a moment")
        engine.start()
        await until(lambda: engine.state == "loading")
        waiting = asyncio.create_task(engine.submit(fill("1"), wait=True))
        served.pool.fault = None
        assert (await waiting).text == "abcdef"
        assert engine.state == "ready"


async def test_a_model_that_is_not_served_is_named(tmp_path: Path) -> None:
    async with serving(models=("first",)) as served, engine_at(served.url, tmp_path, served.token, "other") as engine:
        engine.start()
        await until(lambda: engine.failure is not None)
        assert engine.failure is not None
        assert (engine.failure.kind, "'other'" in engine.failure.message) == ("model_missing", True)


async def test_the_address_may_end_like_that_of_other_servers(tmp_path: Path) -> None:
    async with serving() as served, engine_at(f"{served.url}/v1", tmp_path, served.token) as engine:
        engine.start()
        await until(lambda: engine.state == "ready")


async def test_who_is_over_the_quota_waits_if_somebody_waits_for_it(tmp_path: Path) -> None:
    async with serving(Quota(jobs_at_once=1, jobs_a_minute=0)) as served, greeted(served, tmp_path) as engine:
        begun = asyncio.Event()
        task = asyncio.create_task(engine.submit(fill("1", "steps=30 delay=0.002"), lambda draft: begun.set()))
        await begun.wait()
        with pytest.raises(EngineError, match="as many as one user may") as refused:
            await engine.submit(fill("2"))
        assert refused.value.kind == "quota_exceeded"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await engine.submit(fill("3"), wait=True)).text == "abcdef"


def reply(*messages: Reply, length: int | None = None) -> bytes:
    """A response whose announced length may be more than what comes."""
    body = b"".join(codec.encode(message) for message in messages)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body


@contextlib.asynccontextmanager
async def scripted(answers: list[bytes]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives these answers, one a connection, and what each was asked. The first is asked for facts."""
    asked: list[bytes] = []

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.splitlines()[0])
        writer.write(answers.pop(0) if answers else b"")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(attend, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def ready_reply() -> bytes:
    async with serving() as served:
        return reply(Ready(served.core.facts))


DRAFT = Draft("1", "ab", 1, 1, 3)
DONE = Done("1", "abcdef", STATS)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        reply(DRAFT, length=4096),
        reply(DRAFT),
        reply(DRAFT)[:-4] + b"",
        reply(Failed("1", "gone", "lost", "again")),
    ],
    ids=["nothing", "cut short", "no end", "cut in a frame", "gone"],
)
async def test_a_job_that_is_lost_on_the_way_is_asked_for_again(broken: bytes, tmp_path: Path) -> None:
    async with (
        scripted([await ready_reply(), broken, broken, reply(DRAFT, DONE)]) as (url, asked),
        engine_at(url, tmp_path, "token") as engine,
    ):
        engine.start()
        assert (await engine.submit(fill(), wait=True)).text == "abcdef"
        assert asked == [b"GET /v1/facts HTTP/1.1", *[b"POST /v1/jobs HTTP/1.1"] * 3]


async def test_who_types_has_one_broken_connection_mended_at_once(tmp_path: Path) -> None:
    async with (
        scripted([await ready_reply(), b"", reply(DONE)]) as (url, _),
        engine_at(url, tmp_path, "token") as engine,
    ):
        engine.start()
        await until(lambda: engine.state == "ready")
        assert (await engine.submit(fill())).text == "abcdef"


@pytest.mark.parametrize(
    "strange",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        reply(DONE),
        b"HTTP/1.1 200 OK\r\nContent-Type: " + MEDIA_TYPE.encode() + b"\r\nContent-Length: 6\r\n\r\n\x00\x00\x00\x02hi",
        b"HTTP/1.1 200 OK\r\nContent-Type: " + MEDIA_TYPE.encode() + b"\r\nContent-Length: 4\r\n\r\n\xff\xff\xff\xff",
    ],
    ids=["json", "not found", "another reply", "noise", "oversized"],
)
async def test_what_is_no_lacuna_engine_is_told_so(strange: bytes, tmp_path: Path) -> None:
    async with scripted([strange] * 50) as (url, _), engine_at(url, tmp_path, "token") as engine:
        engine.start()
        await until(lambda: engine.failure is not None)
        assert engine.failure is not None
        assert engine.failure.kind in ("bad_reply", "bad_frame")
        assert engine.failure.remedy


async def test_a_long_job_is_known_to_go_on() -> None:
    async def slow() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.05)
        yield b"first"
        yield b"second"

    found = [frame async for frame in going_on(slow(), 0.01)]  # type: ignore[arg-type]
    assert found[0] == GOES_ON
    assert [frame for frame in found if frame != GOES_ON] == [b"first", b"second"]
    assert len(GOES_ON) == HEADER.size


async def test_frames_without_content_are_passed_over(tmp_path: Path) -> None:
    going = GOES_ON * 3 + codec.encode(DONE)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(going)}\r\n\r\n".encode()
    async with scripted([await ready_reply(), head + going]) as (url, _), engine_at(url, tmp_path, "token") as engine:
        engine.start()
        assert (await engine.submit(fill(), wait=True)).text == "abcdef"
