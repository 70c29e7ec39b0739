"""Bytes in and out: stdin/stdout or one TCP connection, until the editor leaves. Owns when the process ends.

pygls's own loops swallow the exit code, block on a reading thread at the end, and serve one protocol object to every
TCP client; none of them is used. The server itself is only made when the editor's first message is there, and after
`initialize` has been answered: making it takes longer than that answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from lsp_server.frames import BrokenFraming, read_frames
from lsp_server.reception import Greeting, greet

if TYPE_CHECKING:
    from lsp_server.server import LacunaServer
    from lsp_server.wire import StrictProtocol

logger = logging.getLogger(__name__)

READ_SIZE = 1 << 16
EDITOR_POLL_S = 2.0
DRAIN_S = 1.0
CLOSE_S = 1.0
# A frame's header is read as lines; this bounds one line, not a message.
HEADER_LIMIT = 1 << 16
# An editor that reads nothing any more is let go before what waits for it fills the memory.
MOST_WAITING_BYTES = 64 << 20
# Pieces from the editor that the loop has not come to yet; what it cannot follow stays in the pipe.
MOST_PIECES = 16


class FrameWriter(Protocol):
    """Where frames go."""

    def write(self, data: bytes) -> None:
        """Send `data` whole. Raises OSError or ValueError when the other end is gone."""
        ...

    def close(self) -> None:
        """End the stream."""
        ...


class PipeWriter:
    """Frames to a binary stream, each flushed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """See `FrameWriter.write`."""
        self._stream.write(data)
        self._stream.flush()

    def close(self) -> None:
        """Nothing to do: the stream is the process's own and ends with it."""


class SocketWriter:
    """Frames to a connection. What the other end is slow to take waits in memory, up to `MOST_WAITING_BYTES`."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """See `FrameWriter.write`."""
        if self._stream.transport.get_write_buffer_size() > MOST_WAITING_BYTES:
            raise BrokenPipeError("the editor reads nothing")
        self._stream.write(data)

    def close(self) -> None:
        """See `FrameWriter.close`."""
        self._stream.close()


MakeServer = Callable[[], "LacunaServer"]


async def serve(
    make_server: MakeServer, reader: asyncio.StreamReader, writer: FrameWriter, editor_pid: int | None = None
) -> int:
    """Serve one connection until `exit`, the end of the stream, or the death of the editor. Returns the exit code."""
    frames = read_frames(reader)
    first = await _first_of(frames, editor_pid)
    if first is None:
        return 1
    greeting = greet(first)
    if greeting is not None:
        with suppress(OSError, ValueError):
            writer.write(greeting.reply)
    server = make_server()
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    protocol = server.protocol
    protocol.on_exit = lambda code: None if ended.done() else ended.set_result(code)
    watchers: list[asyncio.Task[None]] = []
    protocol.on_editor = lambda pid: watchers.append(asyncio.create_task(_watch_editor(pid, protocol.exit)))
    if editor_pid is not None:
        protocol.on_editor(editor_pid)
    protocol.set_writer(writer)
    _take_first(server, first, greeting)
    reading = asyncio.create_task(_read(protocol, frames))
    try:
        either: list[asyncio.Future[Any]] = [ended, reading]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        code = ended.result() if ended.done() else protocol.exit_code
        await protocol.drain(DRAIN_S)
    finally:
        for task in [reading, *watchers]:
            task.cancel()
        await asyncio.gather(reading, *watchers, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await server.engine.close()
    return code


async def _first_of(frames: AsyncIterator[bytes], editor_pid: int | None) -> bytes | None:
    """The first frame; None when there will be none: the stream ended or stopped making sense, or the editor died."""
    arriving = asyncio.ensure_future(anext(frames, None))
    waiting: list[asyncio.Future[Any]] = [arriving]
    if editor_pid is not None:
        waiting.append(asyncio.create_task(_watch_editor(editor_pid, lambda: None)))
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    try:
        return await arriving
    except (BrokenFraming, OSError) as error:
        _give_up(error)
    except asyncio.CancelledError:
        logger.warning("the editor is gone")
    return None


def _take_first(server: LacunaServer, frame: bytes, greeting: Greeting | None) -> None:
    if greeting is None:
        server.protocol.handle_frame(frame)
    else:
        server.greeted(greeting.handshake)


async def _read(protocol: StrictProtocol, frames: AsyncIterator[bytes]) -> None:
    """Feed the protocol until the stream ends or stops making sense."""
    try:
        async for body in frames:
            protocol.handle_frame(body)
    except (BrokenFraming, OSError) as error:
        _give_up(error)


def _give_up(error: Exception) -> None:
    logger.warning("the connection was given up: %s", error)


async def _watch_editor(pid: int, on_death: Callable[[], None]) -> None:
    """An editor that was killed may leave its pipe open in other processes: ask the system for it."""
    while is_alive(pid):
        await asyncio.sleep(EDITOR_POLL_S)
    on_death()


def is_alive(pid: int) -> bool:
    """Whether a process of that id runs."""
    import psutil

    return bool(psutil.pid_exists(pid))


def serve_stdio(make_server: MakeServer, editor_pid: int | None = None) -> int:
    """Serve the editor at stdin and stdout, and end with its process. Returns the exit code."""
    # What prints by mistake, here or in a library, must not end up between two frames.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    code = 1
    with suppress(OSError), out:
        code = asyncio.run(_serve_pipes(make_server, sys.stdin.fileno(), out, editor_pid))
    return code


async def _serve_pipes(make_server: MakeServer, source: int, out: BinaryIO, editor_pid: int | None) -> int:
    reader = asyncio.StreamReader(HEADER_LIMIT)
    pump = Pump(source, asyncio.get_running_loop(), reader)
    # A thread, because Windows cannot wait for a pipe in the loop; a daemon, because a read cannot be interrupted.
    threading.Thread(target=pump.run, daemon=True, name="stdin").start()
    return await serve(make_server, reader, PipeWriter(out), editor_pid)


class Pump(asyncio.ReadTransport):
    """Bytes from a blocking file descriptor into the loop until the end of the file, or of the loop.

    It reads no further while the reader says that it has enough, or the loop does not follow.
    """

    def __init__(self, source: int, loop: asyncio.AbstractEventLoop, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._source, self._loop, self._reader = source, loop, reader
        self._wanted = threading.Event()
        self._wanted.set()
        self._room = threading.Semaphore(MOST_PIECES)
        reader.set_transport(self)

    def run(self) -> None:
        """Read until the end. Belongs to a thread of its own."""
        with suppress(RuntimeError):
            while chunk := self._next():
                self._loop.call_soon_threadsafe(self._feed, chunk)
            self._loop.call_soon_threadsafe(self._reader.feed_eof)

    def pause_reading(self) -> None:
        """The reader has enough."""
        self._wanted.clear()

    def resume_reading(self) -> None:
        """The reader wants more."""
        self._wanted.set()

    def _next(self) -> bytes:
        self._wanted.wait()
        self._room.acquire()
        return _read_chunk(self._source)

    def _feed(self, chunk: bytes) -> None:
        self._room.release()
        self._reader.feed_data(chunk)


def _read_chunk(source: int) -> bytes:
    try:
        return os.read(source, READ_SIZE)
    except OSError:
        return b""


def serve_tcp(make_server: MakeServer, host: str, port: int) -> int:
    """Serve the first editor that connects, then end. Returns the exit code. Raises OSError if it cannot listen."""
    return asyncio.run(_serve_first(make_server, host, port))


async def _serve_first(make_server: MakeServer, host: str, port: int) -> int:
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    taken = asyncio.Event()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if taken.is_set():
            writer.close()
            return
        taken.set()
        frames = SocketWriter(writer)
        code = await serve(make_server, reader, frames)
        frames.close()
        ended.set_result(code)

    listener = await asyncio.start_server(on_connection, host, port, limit=HEADER_LIMIT)
    address = listener.sockets[0].getsockname()
    print(f"listening on {address[0]}:{address[1]}", file=sys.stderr, flush=True)  # noqa: T201
    async with listener:
        return await ended
