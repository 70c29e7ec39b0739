"""Frames of the base protocol: a header with a length, then that many bytes. Knows nothing of what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

# A message is a document at most; a length beyond this is a broken client, not a text.
MOST_BYTES = 1 << 28
_MOST_DIGITS = 20


class BrokenFraming(Exception):  # noqa: N818 (an outcome, named as the other outcomes are)
    """The stream is not framed as the base protocol asks; where the next message begins is unknown."""


async def read_frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The bodies of the frames until the stream ends, also if it ends inside a frame. Raises BrokenFraming."""
    while (length := await _read_header(reader)) is not None:
        try:
            yield await reader.readexactly(length)
        except asyncio.IncompleteReadError:
            return


def to_frame(body: str) -> bytes:
    """One frame holding `body`."""
    raw = body.encode("utf-8")
    return b"Content-Length: %d\r\n\r\n%b" % (len(raw), raw)


async def _read_header(reader: asyncio.StreamReader) -> int | None:
    """The length the next header states, None at the end of the stream."""
    length: int | None = None
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            raise BrokenFraming("a header line is too long") from None
        if not line.endswith(b"\n"):
            return None
        if not line.strip():
            if length is not None:
                return length
            continue
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = _parsed(value.strip())


def _parsed(value: bytes) -> int:
    # Its digits are counted first: Python refuses to read a number of thousands of them.
    if not value.isdigit() or len(value) > _MOST_DIGITS or int(value) > MOST_BYTES:
        raise BrokenFraming("the content length is no sensible number")
    return int(value)
