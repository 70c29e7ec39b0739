"""The GGUF container (versions 2 and 3, little-endian): its keys and its table of tensors.

Owns the bytes of the header only, after the specification in ggml's docs/gguf.md; what the keys mean is
`gguf_file`'s. Written out here because the `gguf` package builds an array per string and takes ten seconds over a
vocabulary. Every fault of the bytes is a ValueError that says where.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

_Kept = TypeVar("_Kept")

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9
_MOST_DIMENSIONS = 4
_DEFAULT_ALIGNMENT = 32
# Ten times the header of the largest vocabulary known. Its values become objects of several times its size, so that a
# hostile file must not decide how long it is.
MOST_HEADER_BYTES = 64 << 20
# No key of any model holds more than a list of values.
_DEEPEST_ARRAY = 4

Bytes: TypeAlias = bytes | mmap.mmap


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """shape: outermost dimension first. kind: a ggml type number. offset: bytes from the start of the file."""

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """fields: keys to numbers, strings, booleans or lists of them. tensors: by name. data: the whole file."""

    fields: dict[str, Any]
    tensors: dict[str, StoredTensor]
    data: Bytes


def read_header(path: Path) -> GgufHeader:
    """Parse the header of the file. Raises ValueError for damaged bytes, OSError if it cannot be opened."""
    return parse_header(_mapped(path))


def parse_header(data: Bytes) -> GgufHeader:
    """Parse the header at the start of `data`, a whole file. Raises ValueError."""
    cursor = _Cursor(data)
    tensor_count, field_count = _counts(cursor)
    fields = _by_name(_read_field(cursor) for _ in range(field_count))
    stored = _by_name(_read_tensor(cursor) for _ in range(tensor_count))
    alignment = fields.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0:
        raise ValueError(f"an alignment of {alignment!r}")
    start = -(-cursor.offset // alignment) * alignment
    tensors = {name: StoredTensor(tensor.shape, tensor.kind, start + tensor.offset) for name, tensor in stored.items()}
    if outside := [name for name, tensor in tensors.items() if tensor.offset >= len(data)]:
        raise ValueError(f"tensor {outside[0]!r} begins behind the end of the file")
    return GgufHeader(fields, tensors, data)


def fields_in_order(path: Path) -> Iterator[tuple[str, Any]]:
    """The keys of a file one by one: who has seen enough reads no vocabulary. Raises as `read_header` does."""
    cursor = _Cursor(_mapped(path))
    _, field_count = _counts(cursor)
    for _ in range(field_count):
        yield _read_field(cursor)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _counts(cursor: _Cursor) -> tuple[int, int]:
    """How many tensors and how many keys there are, behind the magic number and the version."""
    if cursor.take(4) != _MAGIC:
        raise ValueError("it does not begin like a GGUF file")
    version = cursor.number("I")
    if version not in _VERSIONS:
        raise ValueError(f"GGUF version {version} is not one of {_VERSIONS}")
    return cursor.number("Q"), cursor.number("Q")


def _by_name(pairs: Iterable[tuple[str, _Kept]]) -> dict[str, _Kept]:
    found: dict[str, _Kept] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is there twice")
        found[name] = value
    return found


class _Cursor:
    """A place in the bytes that moves on with every read, never past their end or the most a header may take."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self.offset = 0

    def take(self, size: int) -> bytes:
        end = self.offset + size
        if end > len(self._data):
            raise ValueError(f"it ends at byte {len(self._data)}, inside its header")
        if end > MOST_HEADER_BYTES:
            raise ValueError(f"its header has more than {MOST_HEADER_BYTES} bytes")
        taken = self._data[self.offset : end]
        self.offset = end
        return taken

    def number(self, code: str) -> Any:
        layout = struct.Struct(f"<{code}")
        return layout.unpack(self.take(layout.size))[0]

    def string(self) -> str:
        return self.take(self.number("Q")).decode("utf-8")


def _read_field(cursor: _Cursor) -> tuple[str, Any]:
    name = cursor.string()
    return name, _read_value(cursor, cursor.number("I"), _DEEPEST_ARRAY)


def _read_value(cursor: _Cursor, kind: int, depth: int) -> Any:
    if kind == _STRING:
        return cursor.string()
    if kind == _ARRAY:
        return _read_array(cursor, depth)
    if kind not in _SCALARS:
        raise ValueError(f"value type {kind} at byte {cursor.offset} does not exist")
    return cursor.number(_SCALARS[kind])


def _read_array(cursor: _Cursor, depth: int) -> list[Any]:
    if not depth:
        raise ValueError(f"arrays at byte {cursor.offset} are nested more than {_DEEPEST_ARRAY} deep")
    kind, count = cursor.number("I"), cursor.number("Q")
    if kind in _SCALARS:
        size = struct.calcsize(f"<{_SCALARS[kind]}")
        return [value for (value,) in struct.iter_unpack(f"<{_SCALARS[kind]}", cursor.take(count * size))]
    return [_read_value(cursor, kind, depth - 1) for _ in range(count)]


def _read_tensor(cursor: _Cursor) -> tuple[str, StoredTensor]:
    name, dimensions = cursor.string(), cursor.number("I")
    if not 1 <= dimensions <= _MOST_DIMENSIONS:
        raise ValueError(f"tensor {name!r} has {dimensions} dimensions")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))
    if math.prod(shape) == 0:
        raise ValueError(f"tensor {name!r} is empty")
    kind, offset = cursor.number("I"), cursor.number("Q")
    return name, StoredTensor(shape[::-1], kind, offset)
