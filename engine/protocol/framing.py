"""Frames on a byte stream: a four-byte big-endian length, then that many bytes of payload.

Owns the length prefix and its limit, in a blocking and an asyncio form; knows nothing of what a payload means
(see `codec`). A stream that ends between frames ended cleanly; one that ends inside a frame is a fault.
"""

from __future__ import annotations

import asyncio
import struct
from typing import BinaryIO

from engine.protocol.errors import EngineError

HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 16 * 1024 * 1024
# Nothing but a Hello is due before the handshake, so a stranger cannot make either side hold megabytes.
MAX_HELLO_BYTES = 16 * 1024


def frame(payload: bytes) -> bytes:
    """`payload` with its length in front. Raises EngineError(bad_request) above `MAX_FRAME_BYTES`."""
    if len(payload) > MAX_FRAME_BYTES:
        raise EngineError(
            "bad_request",
            f"the message has {len(payload)} bytes, more than the {MAX_FRAME_BYTES} a frame may have",
            "send less text: a part of the file around the gap is enough",
        )
    return HEADER.pack(len(payload)) + payload


def payload_length(header: bytes, limit: int = MAX_FRAME_BYTES) -> int:
    """The length a header announces. Raises EngineError(bad_frame) above `limit` bytes."""
    (length,) = HEADER.unpack(header)
    if length > limit:
        raise EngineError(
            "bad_frame",
            f"a frame of {length} bytes was announced, more than the {limit} allowed here",
            "close the connection; only a Lacuna client of the same version may use this socket",
        )
    return int(length)


def read_frame(stream: BinaryIO, limit: int = MAX_FRAME_BYTES) -> bytes | None:
    """The next payload, or None at a clean end. Raises EngineError(bad_frame) when cut short or oversized."""
    header = _read_up_to(stream, HEADER.size)
    if not header:
        return None
    if len(header) < HEADER.size:
        raise _cut_short()
    length = payload_length(header, limit)
    payload = _read_up_to(stream, length)
    if len(payload) < length:
        raise _cut_short()
    return payload


async def receive_frame(reader: asyncio.StreamReader, limit: int = MAX_FRAME_BYTES) -> bytes | None:
    """The next payload, or None at a clean end or reset. Raises EngineError(bad_frame) as `read_frame` does."""
    try:
        header = await reader.readexactly(HEADER.size)
    except asyncio.IncompleteReadError as end:
        if end.partial:
            raise _cut_short() from None
        return None
    except ConnectionError:
        return None
    try:
        return await reader.readexactly(payload_length(header, limit))
    except (asyncio.IncompleteReadError, ConnectionError):
        raise _cut_short() from None


def _read_up_to(stream: BinaryIO, count: int) -> bytes:
    chunks: list[bytes] = []
    while count > 0:
        chunk = stream.read(count)
        if not chunk:
            break
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def _cut_short() -> EngineError:
    return EngineError("bad_frame", "the stream ended inside a frame", "connect again")
