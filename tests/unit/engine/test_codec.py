"""Every message survives the wire; nothing that is not a message does."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.protocol import codec, messages
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER, MAX_FRAME_BYTES
from engine.protocol.messages import PROTOCOL_VERSION, Fill, Message, Reply, Request

GOLDEN = Path(__file__).parents[2] / "golden" / f"protocol_v{PROTOCOL_VERSION}.txt"
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=40),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if one is type(None) else values_of(one) for one in arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if is_dataclass(annotation):
        hints = get_type_hints(annotation)
        kind: Any = annotation
        return st.builds(kind, **{name: values_of(hint) for name, hint in hints.items()})
    return SCALARS[annotation]


def decode(message: Message, payload: bytes) -> Message:
    if isinstance(message, get_args(Request)):
        return codec.decode_request(payload)
    return codec.decode_reply(payload)


def payload_of(message: Message) -> bytes:
    frame = codec.encode(message)
    assert HEADER.unpack(frame[: HEADER.size]) == (len(frame) - HEADER.size,)
    return frame[HEADER.size :]


def packed(*parts: object) -> bytes:
    result: bytes = msgpack.packb(list(parts), use_bin_type=True)
    return result


FILL = msgpack.unpackb(payload_of(Fill("7", "python", "a", "b")))[1]


@given(st.one_of(*map(values_of, get_args(Message))))
def test_round_trip(message: Message) -> None:
    if isinstance(message, messages.Hello):
        message = messages.Hello(PROTOCOL_VERSION, message.client, message.token)
    assert decode(message, payload_of(message)) == message


def test_every_message_has_one_tag() -> None:
    assert set(codec.REQUEST_TAGS.values()) == set(get_args(Request))
    assert set(codec.REPLY_TAGS.values()) == set(get_args(Reply))
    assert not codec.REQUEST_TAGS.keys() & codec.REPLY_TAGS.keys()


def example_of(kind: Any) -> Any:
    """A message with a telling value in every field."""
    return kind(**{name: _example(name, hint) for name, hint in get_type_hints(kind).items()})


def _example(name: str, hint: Any) -> Any:
    if is_dataclass(hint):
        return example_of(hint)
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        return _example(name, get_args(hint)[0])
    if get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis:
        return (_example(name, get_args(hint)[0]),)
    if get_origin(hint) is tuple:
        return tuple(_example(name, one) for one in get_args(hint))
    if name == "protocol":
        return PROTOCOL_VERSION
    return {str: f"{name} é🙂\r\n\0", int: 1000, float: 2.5, bool: True}[hint]


def test_bytes_are_those_of_this_protocol_version() -> None:
    """A changed byte is a changed protocol: raise PROTOCOL_VERSION and add a golden file, never edit one."""
    golden = dict(line.split(" ") for line in GOLDEN.read_text(encoding="ascii").split("\n") if line)
    written = {kind.__name__: codec.encode(example_of(kind)).hex() for kind in get_args(Message)}
    assert written == golden
    for kind in get_args(Message):
        payload = bytes.fromhex(golden[kind.__name__])[HEADER.size :]
        assert decode(example_of(kind), payload) == example_of(kind)


@pytest.mark.parametrize(
    ("payload", "kind", "says"),
    [
        pytest.param(b"", "bad_frame", "msgpack", id="empty"),
        pytest.param(b"\xc1", "bad_frame", "msgpack", id="never-used-byte"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "bad_frame", "msgpack", id="http"),
        pytest.param(packed("fill"), "bad_frame", "pair", id="no-fields"),
        pytest.param(packed("fill", FILL) + b"\x00", "bad_frame", "msgpack", id="trailing"),
        pytest.param(packed("fill", FILL)[:-1], "bad_frame", "msgpack", id="cut"),
        pytest.param(packed(1, FILL), "bad_frame", "pair", id="tag-no-text"),
        pytest.param(packed("fill", [1]), "bad_frame", "pair", id="fields-no-map"),
        pytest.param(packed("nonsense", FILL), "unknown_message", "'nonsense'", id="unknown-tag"),
        pytest.param(packed("done", FILL), "unknown_message", "'done'", id="a-reply-is-no-request"),
        pytest.param(packed("fill", {**FILL, "more": 1}), "bad_frame", "unknown field 'more'", id="unknown-field"),
        pytest.param(packed("fill", {"id": "7"}), "bad_frame", "missing field", id="missing-field"),
        pytest.param(packed("fill", {**FILL, "max_lines": True}), "bad_frame", "'max_lines'", id="bool-no-int"),
        pytest.param(packed("fill", {**FILL, "max_lines": 1.0}), "bad_frame", "'max_lines'", id="float-no-int"),
        pytest.param(packed("fill", {**FILL, "prefix": b"x"}), "bad_frame", "'prefix'", id="bytes-no-text"),
        pytest.param(packed("fill", {**FILL, "prefix": None}), "bad_frame", "'prefix'", id="none-no-text"),
        pytest.param(packed("fill", {**FILL, "id": msgpack.ExtType(5, b"")}), "bad_frame", "msgpack", id="extension"),
        pytest.param(packed("fill", {1: 2}), "bad_frame", "msgpack", id="key-no-text"),
        pytest.param(b"\x92\xa6cancel\x82\xa2id\xa1a\xa2id\xa1b", "bad_frame", "msgpack", id="field-twice"),
        pytest.param(b"\x92\xa6cancel\x81\xa2id\xa1\xff", "bad_frame", "msgpack", id="no-utf8"),
        pytest.param(b"\x91" * 100_000, "bad_frame", "msgpack", id="deep"),
        pytest.param(b"\xdd\x00\xff\xff\xff" + b"\x90" * 0xFFFFFF, "bad_frame", "msgpack", id="millions"),
    ],
)
def test_what_is_no_request_is_refused(payload: bytes, kind: str, says: str) -> None:
    with pytest.raises(codec.BadMessageError, match=says) as caught:
        codec.decode_request(payload)
    assert caught.value.kind == kind
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("tag", "body", "says"),
    [
        ("ready", {"facts": None}, "'facts'"),
        ("loading", {"stage": "x", "fraction": "0.5"}, "'fraction'"),
        ("report", {"state": "asleep"}, "missing"),
        ("done", {"id": "1", "text": "", "stats": {"route": "scenic"}, "alternatives": [], "further": []}, "'stats'"),
        ("fill", FILL, "unknown message"),
    ],
)
def test_what_is_no_reply_is_refused(tag: str, body: object, says: str) -> None:
    with pytest.raises(codec.BadMessageError, match=says):
        codec.decode_reply(packed(tag, body))


def test_literals_and_rows_are_checked() -> None:
    report = msgpack.unpackb(payload_of(example_of(messages.StatusReport)))[1]
    uneven = {**report["facts"], "forward_ms": [[1, 2.0, 3]]}
    wrong: list[dict[str, object]] = [{"state": "asleep"}, {"state": []}, {"facts": uneven}]
    for bad in wrong:
        with pytest.raises(codec.BadMessageError):
            codec.decode_reply(packed("report", {**report, **bad}))


def test_a_bad_request_keeps_its_id() -> None:
    with pytest.raises(codec.BadMessageError) as caught:
        codec.decode_request(packed("fill", {"id": "job-9"}))
    assert caught.value.job_id == "job-9"


def test_a_client_of_another_version_learns_so_whatever_its_hello_holds() -> None:
    with pytest.raises(codec.BadMessageError, match=f"protocol {PROTOCOL_VERSION + 1}") as caught:
        codec.decode_request(packed("hello", {"protocol": PROTOCOL_VERSION + 1, "locale": "de"}))
    assert caught.value.kind == "protocol_version"


@given(st.binary(max_size=200))
def test_no_bytes_make_the_decoder_raise_anything_else(payload: bytes) -> None:
    for decoder in (codec.decode_request, codec.decode_reply):
        try:
            message = decoder(payload)
        except codec.BadMessageError:
            continue
        assert is_dataclass(message)


@given(st.data())
def test_one_flipped_byte_gives_a_message_or_a_refusal(data: st.DataObject) -> None:
    payload = bytearray(payload_of(example_of(messages.Rewrite)))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] = data.draw(st.integers(0, 255))
    try:
        message = codec.decode_request(bytes(payload))
    except codec.BadMessageError:
        return
    assert all(hasattr(message, field.name) for field in fields(message))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_a_lone_surrogate_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(EngineError, match="cannot be written") as caught:
        codec.encode(Fill("1", "python", text, ""))
    assert caught.value.kind == "bad_request"
    assert "surrogate" in caught.value.remedy
    assert text not in caught.value.message


def test_a_number_beyond_64_bits_is_refused() -> None:
    with pytest.raises(EngineError, match="OverflowError"):
        codec.encode(Fill("1", "python", "", "", max_tokens=2**70))


def test_a_text_larger_than_a_frame_is_refused() -> None:
    with pytest.raises(EngineError, match=str(MAX_FRAME_BYTES)) as caught:
        codec.encode(Fill("1", "python", "x" * MAX_FRAME_BYTES, ""))
    assert caught.value.kind == "bad_request"
