"""The GGUF container (versions 2 and 3, little-endian): its keys and its table of tensors.

Owns the bytes of the header only, after the specification in ggml's docs/gguf.md; what the keys mean is
`gguf_file`'s. Written out here because the `gguf` package builds an array per string and takes ten seconds over a
vocabulary. Every fault of the bytes is a ValueError that says where.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9
_MOST_DIMENSIONS = 4
_DEFAULT_ALIGNMENT = 32


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
    data: mmap.mmap


def read_header(path: Path) -> GgufHeader:
    """Parse the header of the file. Raises ValueError for damaged bytes, OSError if it cannot be opened."""
    with path.open("rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    cursor = _Cursor(data)
    if cursor.take(4) != _MAGIC:
        raise ValueError("it does not begin like a GGUF file")
    version = cursor.number("I")
    if version not in _VERSIONS:
        raise ValueError(f"GGUF version {version} is not one of {_VERSIONS}")
    tensor_count, field_count = cursor.number("Q"), cursor.number("Q")
    fields = dict(_read_field(cursor) for _ in range(field_count))
    stored = dict(_read_tensor(cursor) for _ in range(tensor_count))
    alignment = fields.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0:
        raise ValueError(f"an alignment of {alignment!r}")
    start = -(-cursor.offset // alignment) * alignment
    tensors = {name: StoredTensor(tensor.shape, tensor.kind, start + tensor.offset) for name, tensor in stored.items()}
    return GgufHeader(fields, tensors, data)


class _Cursor:
    """A place in the bytes that moves on with every read and never past their end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.offset = 0

    def take(self, size: int) -> bytes:
        end = self.offset + size
        if end > len(self._data):
            raise ValueError(f"it ends at byte {len(self._data)}, inside its header")
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
    return name, _read_value(cursor, cursor.number("I"))


def _read_value(cursor: _Cursor, kind: int) -> Any:
    if kind == _STRING:
        return cursor.string()
    if kind == _ARRAY:
        return _read_array(cursor)
    if kind not in _SCALARS:
        raise ValueError(f"value type {kind} at byte {cursor.offset} does not exist")
    return cursor.number(_SCALARS[kind])


def _read_array(cursor: _Cursor) -> list[Any]:
    kind, count = cursor.number("I"), cursor.number("Q")
    if kind in _SCALARS:
        size = struct.calcsize(f"<{_SCALARS[kind]}")
        return [value for (value,) in struct.iter_unpack(f"<{_SCALARS[kind]}", cursor.take(count * size))]
    return [_read_value(cursor, kind) for _ in range(count)]


def _read_tensor(cursor: _Cursor) -> tuple[str, StoredTensor]:
    name, dimensions = cursor.string(), cursor.number("I")
    if not 1 <= dimensions <= _MOST_DIMENSIONS:
        raise ValueError(f"tensor {name!r} has {dimensions} dimensions")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))
    if math.prod(shape) == 0:
        raise ValueError(f"tensor {name!r} is empty")
    kind, offset = cursor.number("I"), cursor.number("Q")
    return name, StoredTensor(shape[::-1], kind, offset)
