"""Engines that are scripted down to the byte, in this process, and a client of theirs that starts no other."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from engine.protocol import codec
from engine.protocol.address import Address, engine_address, make_private
from engine.protocol.framing import receive_frame
from engine.protocol.messages import Facts, Fill, Hello, Ready, Reply, Request, Stats
from lsp_server import __version__
from lsp_server.engine_client import EngineProcess, Patience
from tests.fakes.raw_client import PATIENCE_S

FACTS = Facts("m", "scripted", "cpu", "fp32", "", 4096, 1, (), __version__, 1)
STATS = Stats("causal", "", "end", 1, 1, 1, 0, 0.0, 0.0, 0.0)
# Nothing is to be started in these tests: a client that tries finds that out from this command.
NO_ENGINE = [sys.executable, "-c", "import sys; sys.exit('no engine here')"]
QUICK = Patience(first_retry_s=0.01, longest_retry_s=0.05, lasting_retry_s=60.0, connect_s=10.0)


class Peer:
    """The engine's end of one connection, as the test plays it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def hear(self) -> Request | None:
        async with asyncio.timeout(PATIENCE_S):
            payload = await receive_frame(self._reader)
        return None if payload is None else codec.decode_request(payload)

    def say(self, *replies: Reply) -> None:
        for reply in replies:
            self.writer.write(codec.encode(reply))


Play = Callable[[Peer], Awaitable[None]]


def address_in(home: Path) -> Address:
    address = engine_address("scripted", {"LACUNA_HOME": str(home)})
    make_private(address)
    return address


@asynccontextmanager
async def played(home: Path, *plays: Play) -> AsyncIterator[None]:
    """An engine that plays one part per connection, in order; a failed assertion in a part fails the test."""
    waiting = list(plays)
    parts: list[asyncio.Task[None]] = []

    async def part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        try:
            assert isinstance(await peer.hear(), Hello)
            await waiting.pop(0)(peer)
        finally:
            writer.close()

    def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts.append(asyncio.create_task(part(reader, writer)))

    server = await asyncio.start_unix_server(enter, address_in(home).path)
    try:
        yield
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*parts)
        assert not waiting, "fewer connections than parts"
    finally:
        server.close()
        for task in parts:
            task.cancel()


@asynccontextmanager
async def client_in(home: Path, patience: Patience = QUICK) -> AsyncIterator[EngineProcess]:
    env = {"LACUNA_HOME": str(home)}
    process = EngineProcess("scripted", command=NO_ENGINE, env=env, patience=patience)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process
    finally:
        await process.close()


def fill(job_id: str = "a") -> Fill:
    return Fill(job_id, "python", "x", "y", wants_drafts=True)


async def until_left(peer: Peer) -> None:
    peer.say(Ready(FACTS))
    assert await peer.hear() is None
