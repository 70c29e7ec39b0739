"""Messages to bytes and back: msgpack `[tag, {field: value}]`, one tag per message, decoded strictly.

Owns the tags and the checking of every field; knows nothing of lengths on the wire (see `framing`) or sockets.
Both sides write every field and refuse an unknown tag, an unknown or missing field and a value of another type,
so that two builds that disagree find out at once. The one lenient look is at `Hello.protocol`: a client of another
version must learn that it is of another version, whatever else its Hello holds.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgpack

from engine.protocol import messages
from engine.protocol.errors import EngineError
from engine.protocol.framing import frame
from engine.protocol.messages import PROTOCOL_VERSION, Message, Reply, Request

REQUEST_TAGS: Mapping[str, type] = {
    "hello": messages.Hello,
    "fill": messages.Fill,
    "rewrite": messages.Rewrite,
    "cancel": messages.Cancel,
    "status": messages.Status,
    "shutdown": messages.Shutdown,
}
REPLY_TAGS: Mapping[str, type] = {
    "loading": messages.Loading,
    "ready": messages.Ready,
    "draft": messages.Draft,
    "found": messages.Found,
    "done": messages.Done,
    "cancelled": messages.Cancelled,
    "failed": messages.Failed,
    "report": messages.StatusReport,
}
_TAGS: Mapping[type, str] = {kind: tag for tag, kind in (*REQUEST_TAGS.items(), *REPLY_TAGS.items())}
# Longer than any list or map a message holds, and than all of them in one message together: a hostile frame of a few
# megabytes must not become millions of objects.
_MAX_ITEMS = 4096
_MAX_ITEMS_IN_ALL = 16 * _MAX_ITEMS

_Check = Callable[[object], Any]


class BadMessageError(EngineError):
    """A frame that is no message. `job_id` is the id it carried, where one could be read, so it can be answered."""

    def __init__(self, kind: str, message: str, job_id: str = "") -> None:
        super().__init__(kind, message, "use a Lacuna client and engine of the same version")
        self.job_id = job_id


class _MismatchError(Exception):
    """A value that does not fit its field; the argument says how, without the value itself."""


def encode(message: Message) -> bytes:
    """One whole frame, length included.

    Raises EngineError(bad_request) when the text cannot be sent: larger than a frame, or holding a lone
    surrogate (half of a UTF-16 pair), which no encoding of Unicode can carry.
    """
    try:
        payload = msgpack.packb([_TAGS[type(message)], _plain(message)], use_bin_type=True)
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as fault:
        raise EngineError(
            "bad_request",
            f"the {type(message).__name__} cannot be written as bytes ({type(fault).__name__})",
            "remove half characters (lone surrogates) from the text",
        ) from None
    return frame(cast(bytes, payload))


def decode_request(payload: bytes) -> Request:
    """The request in a frame's payload. Raises BadMessageError(bad_frame | unknown_message | protocol_version)."""
    tag, body = _open(payload)
    if tag == "hello":
        _check_version(body)
    return cast(Request, _build(REQUEST_TAGS, tag, body))


def decode_reply(payload: bytes) -> Reply:
    """The reply in a frame's payload. Raises BadMessageError(bad_frame | unknown_message)."""
    return cast(Reply, _build(REPLY_TAGS, *_open(payload)))


def _open(payload: bytes) -> tuple[str, dict[str, object]]:
    counted = _Counted()
    try:
        document = msgpack.unpackb(
            payload,
            raw=False,
            strict_map_key=True,
            object_pairs_hook=counted.fields,
            list_hook=counted.row,
            ext_hook=_refuse_extension,
            max_array_len=_MAX_ITEMS,
            max_map_len=_MAX_ITEMS,
        )
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException, _MismatchError) as fault:
        raise BadMessageError("bad_frame", f"a frame is not msgpack as agreed ({type(fault).__name__})") from None
    match document:
        case [str() as tag, dict() as body]:
            return tag, body
        case _:
            raise BadMessageError("bad_frame", "a frame is not a pair of tag and fields")


def _check_version(body: Mapping[str, object]) -> None:
    theirs = body.get("protocol")
    if isinstance(theirs, int) and not isinstance(theirs, bool) and theirs != PROTOCOL_VERSION:
        raise BadMessageError(
            "protocol_version", f"the client speaks protocol {theirs}, this engine speaks {PROTOCOL_VERSION}"
        )


def _build(tags: Mapping[str, type], tag: str, body: dict[str, object]) -> object:
    job_id = body.get("id")
    job_id = job_id if isinstance(job_id, str) else ""
    if tag not in tags:
        raise BadMessageError("unknown_message", f"unknown message {tag[:40]!r}", job_id)
    try:
        return _SHAPES[tags[tag]](body)
    except _MismatchError as mismatch:
        raise BadMessageError("bad_frame", f"message {tag!r}: {mismatch}", job_id) from None


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


class _Counted:
    """What the lists and maps of one frame become, and how much they hold in all."""

    def __init__(self) -> None:
        self._items = 0

    def row(self, items: list[object]) -> list[object]:
        self._count(len(items))
        return items

    def fields(self, pairs: list[tuple[object, object]]) -> dict[object, object]:
        self._count(len(pairs))
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _MismatchError("a field came twice")
        return found

    def _count(self, items: int) -> None:
        # An empty one is an object as well.
        self._items += items + 1
        if self._items > _MAX_ITEMS_IN_ALL:
            raise _MismatchError(f"more than {_MAX_ITEMS_IN_ALL} items")


def _refuse_extension(code: int, _data: bytes) -> object:
    raise _MismatchError(f"extension type {code}")


def _check_for(annotation: Any) -> _Check:
    """A function that returns a decoded value in the annotated type, or raises `_MismatchError`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _optional(_check_for(next(one for one in arguments if one is not type(None))))
    if origin is tuple:
        return _rows(arguments)
    if is_dataclass(annotation):
        return _record(cast(type, annotation))
    return _scalar(annotation)


def _scalar(kind: type) -> _Check:
    def check(value: object) -> object:
        if kind is float and type(value) in (int, float):
            return float(cast(float, value))
        if type(value) is not kind:
            raise _MismatchError(f"expected {kind.__name__}, got {type(value).__name__}")
        return value

    return check


def _literal(allowed: tuple[object, ...]) -> _Check:
    def check(value: object) -> object:
        if not isinstance(value, str) or value not in allowed:
            raise _MismatchError(f"expected one of {', '.join(map(str, allowed))}")
        return value

    return check


def _optional(inner: _Check) -> _Check:
    return lambda value: None if value is None else inner(value)


def _rows(arguments: tuple[Any, ...]) -> _Check:
    repeated = len(arguments) == 2 and arguments[1] is Ellipsis
    checks = [_check_for(one) for one in arguments if one is not Ellipsis]

    def check(value: object) -> object:
        if not isinstance(value, list):
            raise _MismatchError(f"expected list, got {type(value).__name__}")
        if repeated:
            return tuple(checks[0](item) for item in value)
        if len(value) != len(checks):
            raise _MismatchError(f"expected {len(checks)} items, got {len(value)}")
        return tuple(one(item) for one, item in zip(checks, value, strict=True))

    return check


def _record(kind: type) -> _Check:
    checks = {name: _check_for(annotation) for name, annotation in get_type_hints(kind).items()}

    def check(value: object) -> object:
        if not isinstance(value, dict):
            raise _MismatchError(f"expected fields, got {type(value).__name__}")
        if unknown := sorted(map(str, value.keys() - checks.keys())):
            raise _MismatchError(f"unknown field {unknown[0][:40]!r}")
        if missing := sorted(checks.keys() - value.keys()):
            raise _MismatchError(f"missing field {missing[0]!r}")
        return kind(**{name: _field(name, one, value[name]) for name, one in checks.items()})

    return check


def _field(name: str, check: _Check, value: object) -> object:
    try:
        return check(value)
    except _MismatchError as mismatch:
        raise _MismatchError(f"field {name!r}: {mismatch}") from None


_SHAPES: Mapping[type, _Check] = {kind: _record(kind) for kind in _TAGS}
