"""The header of a safetensors file: its tensors' names and shapes, without the library and without their values.

Format: 8 bytes of length, little-endian, then a JSON object of that many bytes, one member per tensor and perhaps
`__metadata__`. Reading weights is the library's (safetensors); this is for who only looks. Imports no torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

_LENGTH_BYTES = 8
# The library's own limit.
MOST_HEADER_BYTES = 100_000_000
_METADATA = "__metadata__"


def shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes by tensor name. Raises ValueError for damaged bytes, OSError if the file cannot be read."""
    with path.open("rb") as stream:
        return read_shapes(stream, path.stat().st_size)


def read_shapes(stream: BinaryIO, size: int) -> dict[str, tuple[int, ...]]:
    """As `shapes_in`, from a stream at the start of a file of `size` bytes."""
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    if not 2 <= length <= min(MOST_HEADER_BYTES, size - _LENGTH_BYTES):
        raise ValueError(f"a header of {length} bytes in a file of {size}")
    try:
        header = json.loads(stream.read(length))
    except RecursionError:
        raise ValueError("its header is nested too deep") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    return {name: _shape(name, tensor) for name, tensor in header.items() if name != _METADATA}


def _shape(name: str, tensor: object) -> tuple[int, ...]:
    shape = tensor.get("shape") if isinstance(tensor, dict) else None
    if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"tensor {name[:80]!r} has no shape")
    return tuple(shape)
