"""Frames on streams that end, lie and arrive in pieces."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER, MAX_FRAME_BYTES, frame, read_frame, receive_frame

LIMIT = 1000


class _Drip(io.BytesIO):
    """A stream that hands out one byte per read, as a socket may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(1 if size else size)


def read_all_blocking(data: bytes) -> list[bytes]:
    stream = io.BytesIO(data)
    return list(iter(lambda: read_frame(stream, LIMIT), None))


def read_all_async(data: bytes) -> list[bytes]:
    async def read() -> list[bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        payloads = []
        while (payload := await receive_frame(reader, LIMIT)) is not None:
            payloads.append(payload)
        return payloads

    return asyncio.run(read())


both_forms = pytest.mark.parametrize("read_all", [read_all_blocking, read_all_async])


@both_forms
def test_frames_come_back_in_order(read_all: Callable[[bytes], list[bytes]]) -> None:
    payloads = [b"", b"a", b"\0" * LIMIT]
    assert read_all(b"".join(map(frame, payloads))) == payloads


@both_forms
@pytest.mark.parametrize("cut", [1, 3, 4, 6])
def test_an_end_inside_a_frame_is_a_fault(read_all: Callable[[bytes], list[bytes]], cut: int) -> None:
    with pytest.raises(EngineError, match="ended inside a frame") as caught:
        read_all(frame(b"abc")[:cut])
    assert caught.value.kind == "bad_frame"


@both_forms
def test_an_oversized_frame_is_refused_before_it_is_read(read_all: Callable[[bytes], list[bytes]]) -> None:
    with pytest.raises(EngineError, match=str(LIMIT + 1)) as caught:
        read_all(HEADER.pack(LIMIT + 1))
    assert caught.value.kind == "bad_frame"


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_pieces_of_one_byte_make_the_same_frames(payloads: list[bytes]) -> None:
    stream = _Drip(b"".join(map(frame, payloads)))
    assert [read_frame(stream) for _ in payloads] == payloads
    assert read_frame(stream) is None


def test_the_largest_frame_is_allowed_and_one_byte_more_is_not() -> None:
    assert len(frame(bytes(MAX_FRAME_BYTES))) == HEADER.size + MAX_FRAME_BYTES
    with pytest.raises(EngineError, match="more than") as caught:
        frame(bytes(MAX_FRAME_BYTES + 1))
    assert caught.value.kind == "bad_request"
