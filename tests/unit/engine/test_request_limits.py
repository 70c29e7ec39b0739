"""What one client, and one request, may make the engine hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from engine.ledger import MAX_CHARACTERS_PER_CLIENT, Ledger
from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.messages import Cancelled, Constraints, Failed, Fill, FurtherHole, Rewrite
from engine.request_checks import MOST_CHARACTERS, characters_of, check_request
from engine.service import MAX_CLIENTS
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import ENDLESS, fill, greeted, running


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.mark.parametrize(
    ("request_", "characters"),
    [
        (Fill("1", "python", "ab", "c"), 3),
        (Fill("1", "python", "ab", "c", draft="d"), 4),
        (Fill("1", "python", "ab", "c", further=(FurtherHole("ef", "g"), FurtherHole("h"))), 7),
        (Fill("1", "python", "ab", "c", constraints=Constraints(allowed="xyz", json_schema="{}")), 8),
        (Rewrite("1", "python", "a", "bb", "ccc", "dddd"), 10),
    ],
)
def test_every_text_of_a_request_counts(request_: Fill | Rewrite, characters: int) -> None:
    assert characters_of(request_) == characters


def test_a_request_may_hold_so_much_text_and_no_more() -> None:
    check_request(Fill("1", "python", "a" * (MOST_CHARACTERS - 1), "b"))
    with pytest.raises(EngineError, match=str(MOST_CHARACTERS)) as caught:
        check_request(Fill("1", "python", "a" * MOST_CHARACTERS, "b"))
    assert caught.value.kind == "bad_request"


def test_the_texts_of_a_client_s_open_jobs_are_counted_together() -> None:
    ledger = Ledger(0.0)
    half = MAX_CHARACTERS_PER_CLIENT // 2
    for job in "ab":
        assert not ledger.refusal(1, job, half)
        ledger.open(1, job, half)
    assert str(MAX_CHARACTERS_PER_CLIENT) in ledger.refusal(1, "c", 1)
    assert not ledger.refusal(2, "c", half)
    ledger.settle(1, Cancelled("a"), 1.0)
    assert not ledger.refusal(1, "c", half)


def test_a_frame_of_nested_lists_is_not_made_into_millions_of_objects() -> None:
    """Every list is short enough on its own."""
    inner = b"\xdc\x0f\xff" + b"\x90" * 4095
    payload = b"\xdc\x0f\xff" + inner * 4095
    with pytest.raises(codec.BadMessageError, match="msgpack"):
        codec.decode_request(payload)


def test_the_longest_message_that_makes_sense_is_within_the_count() -> None:
    holes = tuple(FurtherHole("x", "y") for _ in range(63))
    message = Fill("1", "python", "a", "b", further=holes, constraints=Constraints())
    assert codec.decode_request(codec.encode(message)[4:]) == message
    assert len(msgpack.unpackb(codec.encode(message)[4:])) == 2


@pytest.mark.asyncio
async def test_a_client_with_too_much_text_in_its_jobs_is_told_and_kept(home: Path) -> None:
    async with running(home) as engine, greeted(engine.address) as client:
        share = MAX_CHARACTERS_PER_CLIENT // 4 - 1000
        for number in range(4):
            client.send(Fill(str(number), "python", ENDLESS, "x" * share))
        client.send(Fill("more", "python", ENDLESS, "x" * share))
        reply = await client.receive()
        assert isinstance(reply, Failed)
        assert (reply.id, reply.kind) == ("more", "bad_request")
        client.send(fill("small", "steps=1"))


@pytest.mark.asyncio
async def test_more_clients_than_anybody_has_are_turned_away(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_CLIENTS > 20
    monkeypatch.setattr("engine.service.MAX_CLIENTS", 1)
    async with running(home) as engine, greeted(engine.address) as first:
        with pytest.raises((AssertionError, ConnectionError)):
            async with greeted(engine.address):
                pass
        first.send(fill("a", "steps=1"))
        assert await first.receive() is not None
