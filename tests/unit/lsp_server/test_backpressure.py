"""What one side sends faster than the other takes does not pile up in memory."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.protocol.address import engine_address, make_private
from engine.protocol.messages import Fill
from lsp_server import engine_connection
from lsp_server.engine_connection import EngineConnection, EngineGone
from lsp_server.transport import HEADER_LIMIT, MOST_PIECES, MOST_WAITING_BYTES, READ_SIZE, Pump, SocketWriter
from tests.fakes.raw_client import PATIENCE_S, short_home

pytestmark = pytest.mark.asyncio
FLOOD = 64 << 20


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


async def test_an_editor_that_floods_waits_in_its_pipe() -> None:
    """The writer is held up long before the flood is over, and all of it arrives once somebody reads."""
    source, sink = os.pipe()
    written = 0

    def flood() -> None:
        nonlocal written
        while written < FLOOD:
            written += os.write(sink, bytes(READ_SIZE))
        os.close(sink)

    reader = asyncio.StreamReader(HEADER_LIMIT)
    pump = Pump(source, asyncio.get_running_loop(), reader)
    threads = [threading.Thread(target=flood, daemon=True), threading.Thread(target=pump.run, daemon=True)]
    for thread in threads:
        thread.start()
    while True:
        before = written
        await asyncio.sleep(0.3)
        if written == before:
            break
    assert written <= (2 * MOST_PIECES + 8) * READ_SIZE
    assert len(await asyncio.wait_for(reader.readexactly(FLOOD), PATIENCE_S)) == FLOOD
    assert await reader.read() == b""
    for thread in threads:
        await asyncio.to_thread(thread.join, PATIENCE_S)
    os.close(source)


@asynccontextmanager
async def deaf(home: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The client's end of a connection whose other end reads nothing."""
    address = engine_address("deaf", {"LACUNA_HOME": str(home)})
    make_private(address)
    ended, gone = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.transport.abort()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        gone.set()

    server = await asyncio.start_unix_server(listen, address.path)
    async with server:
        reader, writer = await asyncio.open_unix_connection(address.path)
        try:
            yield reader, writer
        finally:
            ended.set()
            writer.transport.abort()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
            await asyncio.wait_for(gone.wait(), PATIENCE_S)


async def test_an_editor_that_reads_nothing_is_let_go(home: Path) -> None:
    async with deaf(home) as (_, writer):
        frames = SocketWriter(writer)
        frames.write(bytes(MOST_WAITING_BYTES // 2))
        frames.write(bytes(MOST_WAITING_BYTES))
        with pytest.raises(BrokenPipeError):
            frames.write(b"more")


async def test_an_engine_that_reads_nothing_is_sent_no_more(home: Path) -> None:
    async with deaf(home) as (reader, writer):
        connection = EngineConnection(reader, writer)
        text = "x" * 12_000_000
        waiting = []
        for number in range(2):
            waiting.append(asyncio.create_task(connection.submit(Fill(str(number), "python", text, ""), None)))
            await asyncio.sleep(0)
        assert not any(job.done() for job in waiting)
        with pytest.raises(EngineGone, match="takes and answers nothing"):
            await connection.submit(Fill("more", "python", "a", ""), None)
        await connection.close()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_requests_that_are_never_answered_are_counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_connection, "MOST_UNANSWERED", 3)
    async with deaf(home) as (reader, writer):
        connection = EngineConnection(reader, writer)
        for number in range(3):
            job = asyncio.create_task(connection.submit(Fill(str(number), "python", "a", ""), None))
            await asyncio.sleep(0)
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)
        with pytest.raises(EngineGone, match="takes and answers nothing"):
            await connection.submit(Fill("more", "python", "a", ""), None)
        await connection.close()
