"""An engine's service inside the test's own process, with a scripted core, and clients that have greeted it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.config import EngineConfig
from engine.job import Run
from engine.loop import CoreFactory
from engine.protocol.address import Address, engine_address, make_private
from engine.protocol.messages import Draft, Failed, Fill, Rewrite
from engine.service import Service
from tests.fakes.raw_client import PATIENCE_S, RawClient, raw_client
from tests.fakes.scripted_core import ScriptedCore

SECRET = "SECRET_MARK_42"
ENDLESS = "steps=0 delay=0.002"


class HangingCore(ScriptedCore):
    """The request `hangs` has a second step that does not end before the test lets it, by `may_end`."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()

    def start(self, request: Fill | Rewrite) -> Run:
        if request.id == "hangs":
            yield Draft(request.id, "", 0, 1, 2)
            self.may_end.wait(PATIENCE_S)
        return (yield from super().start(request))


@dataclass
class Running:
    """A service that runs, and the core in it."""

    address: Address
    core: ScriptedCore
    task: asyncio.Task[int]

    async def status_at_end(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            return await self.task


@asynccontextmanager
async def running(
    home: Path,
    factory: CoreFactory | None = None,
    config: EngineConfig | None = None,
    clock: Callable[[], float] = time.monotonic,
    may_serve: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Running]:
    config = config or EngineConfig(model="scripted")
    address = engine_address(config.model, {"LACUNA_HOME": str(home)}, config.transport)
    make_private(address)
    core = ScriptedCore()
    service = Service(config, address, factory or (lambda progress: core), clock, may_serve)
    await service.open()
    task = asyncio.create_task(service.run())
    try:
        yield Running(address, core, task)
    finally:
        service.drain("the test is over")
        async with asyncio.timeout(PATIENCE_S):
            await task
        assert not service.is_stuck


@asynccontextmanager
async def greeted(address: Address) -> AsyncIterator[RawClient]:
    async with raw_client(address) as client:
        await client.greet()
        yield client


def fill(job_id: str, script: str = "steps=2", *, wants_drafts: bool = False) -> Fill:
    return Fill(job_id, "python", script, SECRET, wants_drafts=wants_drafts)


def failed_kind(reply: object) -> str:
    assert isinstance(reply, Failed), reply
    assert reply.message
    assert reply.remedy
    return reply.kind
