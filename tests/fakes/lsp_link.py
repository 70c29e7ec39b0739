"""A running server as a client sees it: bytes to it, bytes from it, its log and its end."""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Protocol

from lsp_server.server import LacunaServer
from lsp_server.transport import serve

LOGGERS = ("lsp_server", "pygls")


class Link(Protocol):
    """A running server: bytes to it, bytes from it, and its end."""

    received: asyncio.StreamReader

    def send(self, data: bytes) -> None: ...

    def end_input(self) -> None:
        """Close the server's input, as an editor that died does."""
        ...

    def kill(self) -> None: ...

    async def wait(self) -> int:
        """The exit code."""
        ...

    async def log(self) -> bytes:
        """Everything the server logged, once it has ended."""
        ...


class ProcessLink:
    """A server process and its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.received = process.stdout
        self._log = asyncio.create_task(process.stderr.read())

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()

    async def wait(self) -> int:
        return await self.process.wait()

    async def log(self) -> bytes:
        return await self._log


class LocalLink:
    """A server on this very loop: the same bytes, without a process. Its log is what its loggers emit at WARNING."""

    def __init__(self, server: LacunaServer) -> None:
        self.received = asyncio.StreamReader(limit=1 << 26)
        self._to_server = asyncio.StreamReader(limit=1 << 16)
        self._captured = io.StringIO()
        self._handler = logging.StreamHandler(self._captured)
        self._handler.setLevel(logging.WARNING)
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self._handler)
        self._serving = asyncio.create_task(serve(lambda: server, self._to_server, self))
        self._serving.add_done_callback(lambda _task: self.received.feed_eof())

    def write(self, data: bytes) -> None:
        """What the server sends."""
        self.received.feed_data(data)

    def close(self) -> None:
        """The server never closes its writer itself."""

    def send(self, data: bytes) -> None:
        self._to_server.feed_data(data)

    def end_input(self) -> None:
        self._to_server.feed_eof()

    def kill(self) -> None:
        self._serving.cancel()

    async def wait(self) -> int:
        await asyncio.wait({self._serving})
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self._handler)
        return -1 if self._serving.cancelled() else self._serving.result()

    async def log(self) -> bytes:
        return self._captured.getvalue().encode()
