"""Frames of the base protocol."""

from __future__ import annotations

import asyncio

import pytest

from lsp_server.frames import BrokenFraming, read_frames, to_frame

pytestmark = pytest.mark.asyncio


async def bodies(data: bytes) -> list[bytes]:
    reader = asyncio.StreamReader(limit=1 << 13)
    reader.feed_data(data)
    reader.feed_eof()
    return [body async for body in read_frames(reader)]


async def test_frames_survive_the_way() -> None:
    texts = ["{}", "é🙂", "\r\n\r\n"]
    assert await bodies(b"".join(to_frame(text) for text in texts)) == [text.encode() for text in texts]


async def test_headers_may_vary() -> None:
    data = b"content-type: x\r\nCONTENT-LENGTH:  2 \r\n\r\n{}\r\nContent-Length: 1\n\n5"
    assert await bodies(data) == [b"{}", b"5"]


@pytest.mark.parametrize("data", [b"", b"Content-Length: 5\r\n\r\n{}", b"Content-Le", b"\r\n\r\n"])
async def test_a_stream_may_end_anywhere(data: bytes) -> None:
    assert await bodies(data) == []


@pytest.mark.parametrize(
    "data",
    [
        *(b"Content-Length: -5\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: x\r\n", b"x" * 9000),
        # Python itself refuses to read a number of so many digits.
        b"Content-Length: " + b"0" * 3000 + b"2\r\n\r\n{}",
        b"Content-Length: " + b"9" * 4500 + b"\r\n\r\n",
    ],
    ids=range(6),
)
async def test_nonsense_is_given_up(data: bytes) -> None:
    with pytest.raises(BrokenFraming):
        await bodies(data)
