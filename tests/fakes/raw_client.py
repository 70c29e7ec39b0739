"""A bare client of the engine's socket: it says what a test says, well formed or not, and hears single replies."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from engine.protocol import codec
from engine.protocol.address import LOOPBACK, Address, read_endpoint
from engine.protocol.framing import receive_frame
from engine.protocol.messages import PROTOCOL_VERSION, Hello, Message, Ready, Reply

# Far above what any step here takes, so that it only ends a test that would hang.
PATIENCE_S = 20.0


class RawClient:
    """One open connection, not greeted yet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, *messages: Message) -> None:
        for message in messages:
            self.writer.write(codec.encode(message))

    def send_bytes(self, data: bytes) -> None:
        self.writer.write(data)

    async def receive(self) -> Reply | None:
        """The next reply, None when the engine has closed the connection."""
        async with asyncio.timeout(PATIENCE_S):
            payload = await receive_frame(self._reader)
        return None if payload is None else codec.decode_reply(payload)

    async def receive_all(self) -> list[Reply]:
        """Every reply until the engine closes the connection."""
        replies: list[Reply] = []
        while (reply := await self.receive()) is not None:
            replies.append(reply)
        return replies

    async def greet(self, token: str = "") -> Ready:
        """Say Hello and wait through the loading."""
        self.send(Hello(PROTOCOL_VERSION, "test", token))
        while not isinstance(reply := await self.receive(), Ready):
            assert reply is not None, "the engine closed the connection"
        return reply

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def raw_client(address: Address) -> AsyncIterator[RawClient]:
    """A connection to `address`, closed at the end."""
    if address.transport == "unix":
        client = RawClient(*await asyncio.open_unix_connection(address.path))
    else:
        client = RawClient(*await asyncio.open_connection(LOOPBACK, read_endpoint(address.path).port))
    try:
        yield client
    finally:
        await client.close()


@contextmanager
def short_home() -> Iterator[Path]:
    """A fresh folder for LACUNA_HOME whose path leaves room for a socket's, which pytest's own folders may not."""
    with tempfile.TemporaryDirectory(prefix="lac-") as folder:
        yield Path(folder)
