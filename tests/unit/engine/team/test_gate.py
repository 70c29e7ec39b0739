"""A team's gate over real HTTP: who comes in, what is refused and how, streams, cancels, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER, MAX_FRAME_BYTES
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Done,
    Draft,
    Failed,
    Fill,
    Message,
    Ready,
    Reply,
    Shutdown,
    StatusReport,
)
from engine.team.access import TokenBook, new_entry
from engine.team.gate import Gate
from engine.team.quotas import Quota, QuotaBook
from tests.fakes.clock import Clock
from tests.fakes.team_gate import PATIENCE_S, Serving, listening, serving

ENDLESS = "steps=0 delay=0.001"

pytestmark = pytest.mark.asyncio


def headers(token: str, **others: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}".strip(), "Lacuna-Protocol": str(PROTOCOL_VERSION)} | others


def payload(message: Message) -> bytes:
    return codec.encode(message)[HEADER.size :]


def fill(name: str = "1", script: str = "steps=3 text=abcdef") -> Fill:
    return Fill(name, "python", script, "SECRET_MARK_42", wants_drafts=True)


def frames(body: bytes) -> list[Reply]:
    found = []
    while body:
        (length,) = HEADER.unpack(body[: HEADER.size])
        found.append(codec.decode_reply(body[HEADER.size : HEADER.size + length]))
        body = body[HEADER.size + length :]
    return found


def client(served: Serving, token: str | None = None, **others: str) -> httpx.AsyncClient:
    given = headers(served.token if token is None else token, **others)
    return httpx.AsyncClient(base_url=served.url, headers=given, timeout=PATIENCE_S)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


def refused(response: httpx.Response) -> Failed:
    (reply,) = frames(response.content)
    assert isinstance(reply, Failed)
    assert reply.message
    assert reply.remedy
    return reply


async def test_a_job_is_answered_by_its_drafts_and_its_end() -> None:
    async with serving() as served, client(served) as http:
        response = await http.post("/v1/jobs", content=payload(fill("7")))
    *drafts, done = frames(response.content)
    assert response.status_code == 200
    assert [draft.text for draft in drafts if isinstance(draft, Draft)] == ["ab", "abcd", "abcdef"]
    assert isinstance(done, Done)
    assert (done.id, done.text) == ("7", "abcdef")


async def test_a_draft_arrives_while_the_job_runs() -> None:
    async with serving() as served, client(served) as http:
        async with http.stream("POST", "/v1/jobs", content=payload(fill("1", ENDLESS))) as response:
            async for part in response.aiter_bytes():
                assert isinstance(frames(part)[0], Draft)
                break
        # Closing the response is the cancel.
        await until(lambda: served.core.abandoned == ["1"])


async def test_facts_status_and_health() -> None:
    clock = Clock()
    async with serving(clock=clock) as served, client(served) as http:
        (ready,) = frames((await http.get("/v1/facts")).content)
        assert isinstance(ready, Ready)
        assert ready.facts.model == "scripted"
        await http.post("/v1/jobs", content=payload(fill("1")))
        await http.post("/v1/jobs", content=payload(fill("2", "fail=round_trip")))
        async with http.stream("POST", "/v1/jobs", content=payload(fill("3", ENDLESS))) as response:
            await anext(response.aiter_bytes())
            (during,) = frames((await http.get("/v1/status")).content)
        await until(lambda: bool(served.core.abandoned))
        clock.now += 5
        await until_counted(http)
        (after,) = frames((await http.get("/v1/status")).content)
        assert isinstance(during, StatusReport)
        assert isinstance(after, StatusReport)
        assert (during.jobs_running, during.clients, during.idle_s) == (1, 1, 0.0)
        counts = after.jobs_done, after.jobs_failed, after.jobs_cancelled, after.jobs_running
        assert counts == (1, 1, 1, 0)
        assert after.uptime_s == 5.0
        health = await http.get("/healthz", headers={"Authorization": ""})
        assert (health.status_code, health.text) == (200, "ok")


async def until_counted(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (report,) = frames((await http.get("/v1/status")).content)
            assert isinstance(report, StatusReport)
            if not report.jobs_running:
                return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/facts", "/v1/status"])
@pytest.mark.parametrize("token", ["", "wrong"])
async def test_nobody_comes_in_without_a_token(path: str, token: str) -> None:
    async with serving() as served, client(served, token) as http:
        method = "POST" if path == "/v1/jobs" else "GET"
        response = await http.request(method, path, content=payload(fill()) if method == "POST" else None)
        assert (response.status_code, refused(response).kind) == (401, "bad_token")
        assert served.core.order == []


async def test_tokens_can_be_taken_back_while_it_runs() -> None:
    async with serving() as served, client(served) as http:
        assert (await http.get("/v1/facts")).status_code == 200
        served.gate.admit(TokenBook.parse(new_entry("carol")[1]))
        assert (await http.get("/v1/facts")).status_code == 401


async def test_a_gate_that_does_not_know_its_users_yet_sends_nobody_away_for_good() -> None:
    async with serving() as served, client(served) as http:
        async with listening(Gate(served.pool, None, QuotaBook(Quota()), ["scripted"])) as url:
            response = await http.get(f"{url}/v1/facts")
            nobody = [
                await http.get(f"{url}{path}", headers={"Authorization": ""}) for path in ("/v1/facts", "/v1/status")
            ]
        assert (response.status_code, refused(response).kind) == (503, "loading")
        assert [(each.status_code, refused(each).kind) for each in nobody] == [(401, "bad_token")] * 2


async def test_another_version_is_told_so() -> None:
    async with serving() as served, client(served, **{"Lacuna-Protocol": "1"}) as http:
        response = await http.get("/v1/facts")
        assert (response.status_code, refused(response).kind) == (400, "protocol_version")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "bad_frame"),
        (b"not msgpack", "bad_frame"),
        (payload(fill())[:-3], "bad_frame"),
        (payload(Cancel("1")), "unknown_message"),
        (payload(Shutdown()), "unknown_message"),
        (b"x" * (MAX_FRAME_BYTES + 1), "bad_frame"),
    ],
    ids=["empty", "noise", "cut", "cancel", "shutdown", "oversized"],
)
async def test_what_is_no_job_is_refused(body: bytes, kind: str) -> None:
    async with serving() as served, client(served) as http:
        response = await http.post("/v1/jobs", content=body)
        assert (response.status_code, refused(response).kind) == (400, kind)
        assert (await http.get("/v1/facts")).status_code == 200


async def test_who_asks_for_too_much_is_told_when_to_come_again() -> None:
    async with serving(Quota(jobs_at_once=1, jobs_a_minute=0)) as served, client(served) as http:
        async with http.stream("POST", "/v1/jobs", content=payload(fill("1", ENDLESS))) as running:
            await anext(running.aiter_bytes())
            response = await http.post("/v1/jobs", content=payload(fill("2")))
            assert (response.status_code, response.headers["retry-after"]) == (429, "1")
            assert (refused(response).id, refused(response).kind) == ("2", "quota_exceeded")
            async with client(served, served.other) as bob:
                assert (await bob.post("/v1/jobs", content=payload(fill("2")))).status_code == 200
        await until_counted(http)
        assert (await http.post("/v1/jobs", content=payload(fill("3")))).status_code == 200


async def test_models_are_chosen_among_those_that_are_served() -> None:
    async with serving(models=("first", "second")) as served, client(served) as http:
        for name, expected in (("", "first"), ("second", "second")):
            await http.post("/v1/jobs", content=payload(fill()), headers={"Lacuna-Model": name})
            assert served.pool.models[-1] == expected
        response = await http.post("/v1/jobs", content=payload(fill()), headers={"Lacuna-Model": "../third"})
        assert refused(response).kind == "model_missing"
        assert "first, second" in refused(response).remedy


async def test_a_pool_that_fails_is_told_in_the_stream() -> None:
    async with serving() as served, client(served) as http:
        served.pool.fault = EngineError("gone", "no replica is left", "ask again")
        (reply,) = frames((await http.post("/v1/jobs", content=payload(fill("9")))).content)
        assert reply == Failed("9", "gone", "no replica is left", "ask again")
        assert (await http.get("/v1/facts")).status_code == 503


async def test_other_paths_and_methods_are_told_where_to_look() -> None:
    async with serving() as served, client(served) as http:
        assert (await http.get("/v1/jobs")).status_code == 405
        assert (await http.get("/v2")).status_code == 404
        assert "docs/team.md" in (await http.get("/")).text
