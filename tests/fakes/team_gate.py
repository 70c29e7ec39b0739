"""A team's gate on a port of this machine, with a scripted core behind it and no Ray, in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope, Send

from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.messages import Facts, Fill, Rewrite
from engine.team.access import TokenBook, new_entry
from engine.team.gate import Gate
from engine.team.quotas import Quota, QuotaBook
from engine.team.resident import ResidentEngine
from tests.fakes.scripted_core import ScriptedCore

PATIENCE_S = 20.0


class LocalPool:
    """A `gate.Pool` over one engine of this process. `fault`: what it fails with instead of serving."""

    def __init__(self, engine: ResidentEngine) -> None:
        self._engine = engine
        self.fault: EngineError | None = None
        self.models: list[str] = []

    async def run(self, model: str, user: str, payload: bytes) -> AsyncGenerator[bytes, None]:
        self.models.append(model)
        if self.fault is not None:
            raise self.fault
        request = codec.decode_request(payload)
        assert isinstance(request, Fill | Rewrite)
        async with contextlib.aclosing(self._engine.jobs(user, request)) as replies:
            async for reply in replies:
                yield codec.encode(reply)

    async def facts(self, model: str) -> Facts:
        if self.fault is not None:
            raise self.fault
        return await self._engine.load()


@dataclass
class Serving:
    """A gate that is served, and what is behind it. `token` is ada's, `other` bob's."""

    url: str
    token: str
    other: str
    gate: Gate
    pool: LocalPool
    core: ScriptedCore


@contextlib.asynccontextmanager
async def serving(
    quota: Quota | None = None, models: Sequence[str] = ("scripted",), clock: Callable[[], float] | None = None
) -> AsyncIterator[Serving]:
    core = ScriptedCore()
    engine = ResidentEngine(lambda progress: core)
    (token, first), (other, second) = new_entry("ada"), new_entry("bob")
    pool = LocalPool(engine)
    quotas = QuotaBook(quota or Quota(0, 0))
    book = TokenBook.parse(f"{first}\n{second}\n")
    gate = Gate(pool, book, quotas, models) if clock is None else Gate(pool, book, quotas, models, clock)
    async with listening(gate) as url:
        yield Serving(url, token, other, gate, pool, core)
    engine.close()


@contextlib.asynccontextmanager
async def listening(gate: Gate) -> AsyncIterator[str]:
    """The gate's address while it is served."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await gate.answer(HttpRequest(scope, receive))
        await response(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            async with asyncio.timeout(PATIENCE_S):
                await task
