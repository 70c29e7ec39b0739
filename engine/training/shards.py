"""Holes as token ids in files: `TokenHole`, `write_shard` and `Shard`.

Owns the layout of a shard, one safetensors file: all ids in one row, the bounds of every part, kind and language by
number, and a description in the file's metadata. Must not know how holes are made or what a trainer does with them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

MOST_PREFIX, MOST_MIDDLE, MOST_SUFFIX = 640, 128, 200

_FORMAT = "lacuna-holes-1"
_METADATA = "shard"
_PARTS = 3
_DTYPES = "int32, int64, uint8, uint8"
_REMEDY = "build it again with `python -m engine.training shards`"


@dataclass(frozen=True, slots=True)
class TokenHole:
    """One hole. The parts are tokenised apart, as a prompt puts them together."""

    prefix: tuple[int, ...]
    """Ids of the text before the gap: the last 640 at most."""
    middle: tuple[int, ...]
    """Ids of the gap: at most 128, none for an empty gap, no end token."""
    suffix: tuple[int, ...]
    """Ids of the text after the gap: the first 200 at most."""
    kind: str
    """A `HoleKind` value: "line_rest", "lines", "block", "arguments", "span" or "empty"."""
    language: str
    """The language's usual name in small letters: "python", "cpp"."""

    def __post_init__(self) -> None:
        sizes = (len(self.prefix), len(self.middle), len(self.suffix))
        if any(size > most for size, most in zip(sizes, (MOST_PREFIX, MOST_MIDDLE, MOST_SUFFIX), strict=True)):
            raise ValueError(
                f"a hole has prefix, middle, suffix of at most {MOST_PREFIX}, {MOST_MIDDLE}, {MOST_SUFFIX}"
                f" ids, not {sizes}: shorten it before storing it"
            )


def write_shard(path: Path, holes: Sequence[TokenHole], description: Mapping[str, str]) -> None:
    """Write the holes to one file that appears whole or not at all.

    Raises ValueError for no holes, OSError from the disk.
    """
    if not holes:
        raise ValueError("a shard without holes is of no use: give at least one")
    kinds = sorted({hole.kind for hole in holes})
    languages = sorted({hole.language for hole in holes})
    parts = [part for hole in holes for part in (hole.prefix, hole.middle, hole.suffix)]
    tensors: dict[str, NDArray[Any]] = {
        "ids": np.fromiter((index for part in parts for index in part), dtype=np.int32),
        "bounds": np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64),
        "kind": np.array([kinds.index(hole.kind) for hole in holes], dtype=np.uint8),
        "language": np.array([languages.index(hole.language) for hole in holes], dtype=np.uint8),
    }
    about = {"format": _FORMAT, "kinds": kinds, "languages": languages, "description": dict(description)}
    _save(path, tensors, about)


class Shard:
    """A shard read into memory: a sequence of `TokenHole`.

    Raises ValueError that says what to do for anything that is no whole shard, FileNotFoundError where nothing is.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"there is no shard at {path}: {_REMEDY}")
        try:
            tensors, metadata = _read(path)
            self._ids: NDArray[np.int32] = tensors["ids"]
            self._bounds: NDArray[np.int64] = tensors["bounds"]
            self._kind: NDArray[np.uint8] = tensors["kind"]
            self._language: NDArray[np.uint8] = tensors["language"]
            self._kinds: list[str] = metadata["kinds"]
            self._languages: list[str] = metadata["languages"]
            self.description: Mapping[str, str] = MappingProxyType(metadata["description"])
        except (SafetensorError, KeyError, ValueError, TypeError) as fault:
            raise ValueError(f"{path} is no shard ({fault}): {_REMEDY}") from fault
        if problem := self._problem(metadata):
            raise ValueError(f"{path} is no whole shard ({problem}): {_REMEDY}")

    def __len__(self) -> int:
        return len(self._kind)

    def __getitem__(self, index: int) -> TokenHole:
        if not -len(self) <= index < len(self):
            raise IndexError(f"hole {index} of {len(self)}")
        place = index % len(self)
        edges = self._bounds[_PARTS * place : _PARTS * place + _PARTS + 1].tolist()
        prefix, middle, suffix = (tuple(self._ids[start:stop].tolist()) for start, stop in pairwise(edges))
        kind, language = self._kinds[self._kind[place]], self._languages[self._language[place]]
        return TokenHole(prefix, middle, suffix, kind, language)

    def __iter__(self) -> Iterator[TokenHole]:
        return (self[index] for index in range(len(self)))

    def _problem(self, metadata: Mapping[str, Any]) -> str | None:
        """What is wrong with the parts together, so that no later look-up can go astray."""
        if metadata.get("format") != _FORMAT:
            return f"its format is {metadata.get('format')}, not {_FORMAT}"
        dtypes = ", ".join(part.dtype.name for part in (self._ids, self._bounds, self._kind, self._language))
        if dtypes != _DTYPES:
            return f"its parts are {dtypes}, not {_DTYPES}"
        if self._kind.shape != self._language.shape or self._bounds.shape != (_PARTS * len(self._kind) + 1,):
            return "its parts are of different lengths"
        if len(self._kind) == 0 or self._kind.max() >= len(self._kinds):
            return "a kind has no name"
        if self._language.max() >= len(self._languages):
            return "a language has no name"
        return self._bounds_problem()

    def _bounds_problem(self) -> str | None:
        sizes = np.diff(self._bounds).reshape(-1, _PARTS)
        if self._bounds[0] != 0 or self._bounds[-1] != self._ids.size or sizes.min() < 0:
            return "its bounds do not cover its ids"
        if (sizes.max(axis=0) > (MOST_PREFIX, MOST_MIDDLE, MOST_SUFFIX)).any():
            return "a hole is longer than a hole may be"
        return "an id is negative" if self._ids.size and self._ids.min() < 0 else None


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    with safe_open(path, framework="numpy") as stored:
        tensors = {name: stored.get_tensor(name) for name in ("ids", "bounds", "kind", "language")}
        return tensors, dict(json.loads((stored.metadata() or {})[_METADATA]))


def _save(path: Path, tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write beside the target and rename: a reader never sees half a shard.

    All metadata is one entry: safetensors writes several in any order, and the same holes must make the same bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        part = Path(folder) / path.name
        save_file(dict(tensors), part, metadata={_METADATA: json.dumps(about, sort_keys=True)})
        part.replace(path)
