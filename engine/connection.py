"""One client's connection on the engine's side: the greeting, requests in, replies out.

Owns a stream and its limits; decides nothing about jobs (see `service`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from engine.protocol import codec
from engine.protocol.address import same_token
from engine.protocol.errors import EngineError
from engine.protocol.framing import MAX_FRAME_BYTES, MAX_HELLO_BYTES, receive_frame
from engine.protocol.messages import PROTOCOL_VERSION, Draft, Failed, Hello, Reply, Request
from engine.protocol.peer import require_same_user

log = logging.getLogger(__name__)

GREETING_LIMIT_S = 5.0
CLOSING_LIMIT_S = 1.0
# A draft is worth nothing when the next one is there, so a client that reads slowly is spared them.
SLOW_CLIENT_BYTES = 256 * 1024
# Replies cannot be left out; a client that reads none at all is let go before it fills the memory.
STUCK_CLIENT_BYTES = 64 * 1024 * 1024


class Connection:
    """A client. `number` names it in the engine; ids of jobs are the client's own."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self._reader = reader
        self._writer = writer

    async def greet(self, token: str) -> bool:
        """Read the Hello. False, with the reason sent, if the client cannot be served.

        `token` is what the Hello must carry, empty where the socket's folder guards it instead.
        """
        try:
            require_same_user(self._writer.get_extra_info("socket"))
            async with asyncio.timeout(GREETING_LIMIT_S):
                payload = await receive_frame(self._reader, MAX_HELLO_BYTES)
            if payload is None:
                return False
            hello = codec.decode_request(payload)
            check_hello(hello, token)
        except TimeoutError:
            return False
        except EngineError as error:
            self.fail("", error)
            return False
        return True

    async def requests(self) -> AsyncIterator[Request]:
        """Every request until the client leaves. A frame that is no message is answered and passed over."""
        while True:
            try:
                payload = await receive_frame(self._reader, MAX_FRAME_BYTES)
            except EngineError as error:
                # Where the frames lie is unknown from here on.
                self.fail("", error)
                return
            if payload is None:
                return
            try:
                request = codec.decode_request(payload)
            except codec.BadMessageError as error:
                self.fail(error.job_id, error)
            else:
                yield request

    def send(self, reply: Reply) -> None:
        """Queue `reply`. Never waits; drafts are left out for a slow client, a stuck one is let go."""
        waiting = self._writer.transport.get_write_buffer_size()
        if self._writer.is_closing() or (isinstance(reply, Draft) and waiting > SLOW_CLIENT_BYTES):
            return
        if waiting > STUCK_CLIENT_BYTES:
            log.warning("client %d reads nothing; its connection is ended", self.number)
            self._writer.transport.abort()
            return
        self._writer.write(codec.encode(reply))

    def fail(self, job_id: str, error: EngineError) -> None:
        """Queue a Failed for `error`; an empty id tells it to the connection as a whole."""
        self.send(Failed(job_id, error.kind, error.message, error.remedy))

    async def close(self) -> None:
        """Send what is queued, as far as the client takes it within a second, and end the connection."""
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSING_LIMIT_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


def check_hello(request: Request, token: str) -> None:
    """Raises EngineError(bad_request | protocol_version | bad_token) unless `request` is a Hello to be served."""
    if not isinstance(request, Hello):
        raise EngineError("bad_request", "the first message must be Hello", "greet the engine first")
    if request.protocol != PROTOCOL_VERSION:
        raise EngineError(
            "protocol_version",
            f"the client speaks protocol {request.protocol}, this engine speaks {PROTOCOL_VERSION}",
            "use a Lacuna client and engine of the same version: restart the editor, then `lacuna engine stop`",
        )
    if token and not same_token(token, request.token):
        raise EngineError(
            "bad_token", "the token is wrong", "restart the editor, which reads it anew from the engine's files"
        )
