"""Which files git tracks: the paths in a repository's index, versions 2 to 4 of the format (gitformat-index(5)).

Reads the index, and nothing else, when asked for a path; what was found is kept until the file changes on disk. Runs no
git. What is not in that one file is not known to be tracked: the shared part of a split index, what a sparse index
leaves folded, and an index too large to be looked through while somebody types.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

# Some 600,000 files, looked through in 30 ms.
LARGEST_BYTES = 64 * 1024 * 1024
# Names of version 4 have to be spelled out one after another: some 50,000 files, in 150 ms.
LARGEST_SPELLED_BYTES = 4 * 1024 * 1024
MOST_KEPT = 64

_HEADER = Struct(">4sII")
_STAT_BYTES = 40
_MODE = Struct(">I")
_MODE_AT = 24
# Plain and executable files, symbolic links, submodules.
_MODES = frozenset({0o100644, 0o100755, 0o120000, 0o160000})
# The object's name, by SHA-1 or SHA-256; the file itself does not say by which.
_ID_BYTES = (20, 32)
_FLAGS = Struct(">H")
_IS_EXTENDED = 0x4000
_NAME_LENGTH = 0x0FFF
_ALIGNMENT = 8

Stamp = tuple[int, int]


class GitIndexes:
    """Answers for the indexes of any repository."""

    def __init__(self) -> None:
        self._found: dict[Path, tuple[Stamp, dict[str, bool]]] = {}

    def tracks(self, index: Path, path: str) -> bool:
        """Whether the index file at `index` holds `path`, relative to the work tree. False where it cannot be read."""
        try:
            found = index.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            kept = self._found.get(index)
            if kept is None or kept[0] != stamp:
                kept = stamp, {}
            if path not in kept[1]:
                kept[1][path] = found.st_size <= LARGEST_BYTES and holds(index.read_bytes(), os.fsencode(path))
        except (OSError, ValueError):
            return False
        if len(self._found) >= MOST_KEPT:
            self._found.clear()
        self._found[index] = kept
        return kept[1][path]


def holds(data: bytes, path: bytes) -> bool:
    """Whether the index in `data` has an entry of that name, at any stage. Raises ValueError when it is no index."""
    try:
        signature, version, count = _HEADER.unpack_from(data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            raise ValueError("not an index of a version that is known")
        if version < 4:
            return _stands_whole(data, path)
        if len(data) > LARGEST_SPELLED_BYTES:
            raise ValueError("the index is too large to be spelled out")
        return any(name == path for name in _spelled_names(data, count))
    except (IndexError, struct.error):
        raise ValueError("the index ends early") from None


def _stands_whole(data: bytes, path: bytes) -> bool:
    """Whether an entry has that name in an index of version 2 or 3, where names stand whole."""
    place = data.find(path + b"\0")
    while place >= 0:
        if any(_is_name(data, place, len(path), size, more) for size in _ID_BYTES for more in (0, _FLAGS.size)):
            return True
        place = data.find(path + b"\0", place + 1)
    return False


def _is_name(data: bytes, place: int, length: int, id_bytes: int, more: int) -> bool:
    """Whether `place` is where an entry's name begins, by what stands before it: with `more` bytes of flags."""
    flags_at = place - _FLAGS.size - more
    start = flags_at - id_bytes - _STAT_BYTES
    if start < _HEADER.size or (start - _HEADER.size) % _ALIGNMENT:
        return False
    flags, mode = _FLAGS.unpack_from(data, flags_at)[0], _MODE.unpack_from(data, start + _MODE_AT)[0]
    return (flags & _NAME_LENGTH, bool(flags & _IS_EXTENDED), mode in _MODES) == (
        min(length, _NAME_LENGTH),
        bool(more),
        True,
    )


def _spelled_names(data: bytes, count: int) -> Iterator[bytes]:
    """The names in an index of version 4, each given by what it shares with the one before and what it does not.

    Raises ValueError where a name is not as long as it says.
    """
    for size in _ID_BYTES:
        try:
            next(_names_after_ids(data, min(count, 1), size), b"")
        except (ValueError, IndexError, struct.error):
            continue
        return _names_after_ids(data, count, size)
    raise ValueError("the index begins with no entry that makes sense")


def _names_after_ids(data: bytes, count: int, id_bytes: int) -> Iterator[bytes]:
    place, name = _HEADER.size, b""
    for _ in range(count):
        place += _STAT_BYTES + id_bytes
        (flags,) = _FLAGS.unpack_from(data, place)
        place += _FLAGS.size * (2 if flags & _IS_EXTENDED else 1)
        dropped, place = _varint(data, place)
        end = data.find(b"\0", place)
        name = name[: len(name) - dropped] + data[place:end]
        if end < 0 or min(len(name), _NAME_LENGTH) != flags & _NAME_LENGTH:
            raise ValueError("an entry of the index is not as long as it says")
        yield name
        place = end + 1


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in the encoding of `OFS_DELTA` (gitformat-pack(5)), and where it ends."""
    value = data[place] & 0x7F
    while data[place] & 0x80:
        place += 1
        value = (value + 1 << 7) + (data[place] & 0x7F)
    return value, place + 1
