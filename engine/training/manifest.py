"""What a corpus consists of and where it came from: `Manifest`, its JSON file and its digest.

Owns CORPUS/manifest.json. Names packages, versions, licences and digests, never an address. Must not fetch or filter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MANIFEST, FILES = "manifest.json", "files"
TRAIN, HELD_OUT = "train", "held_out"
_FORMAT = 1
_HELD_PROJECTS, _HELD_FILES, _LARGE = 0.03, 0.02, 0.05


@dataclass(frozen=True, slots=True)
class PackageRecord:
    """One package that was read."""

    project: str
    registry: str
    archives: Mapping[str, str]
    """File name to sha256."""
    licence: str
    """As the package itself declares it; for one that declares it by file, all those of the files kept."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file kept, at CORPUS/files/`stored`."""

    stored: str
    project: str
    path: str
    """Inside the package."""
    language: str
    licence: str
    sha256: str
    split: str
    """`TRAIN` or `HELD_OUT`, the same for all files of a project."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole corpus. `left_out` tells why a package gave nothing, `dropped` how many files each filter took."""

    packages: tuple[PackageRecord, ...]
    files: tuple[FileRecord, ...]
    left_out: Mapping[str, str]
    dropped: Mapping[str, int]
    excluded: str
    """sha256 of the benchmark rows kept out; empty when none were given."""

    def write(self, corpus: Path) -> None:
        """Write CORPUS/manifest.json, whole or not at all."""
        part = corpus / f"{MANIFEST}.part"
        part.write_text(json.dumps({"format": _FORMAT, **asdict(self)}, indent=1) + "\n", encoding="utf-8")
        part.replace(corpus / MANIFEST)


def read_manifest(corpus: Path) -> tuple[Manifest, str]:
    """The manifest and its sha256. Raises ValueError that says what to do when there is none to read."""
    path = corpus / MANIFEST
    remedy = "build the corpus with `python -m engine.training corpus`"
    if not path.is_file():
        raise ValueError(f"there is no corpus at {corpus}: {remedy}")
    data = path.read_bytes()
    try:
        return _manifest(json.loads(data)), hashlib.sha256(data).hexdigest()
    except (ValueError, TypeError, KeyError) as fault:
        raise ValueError(f"{path} is no manifest ({fault}): {remedy}") from fault


def _manifest(raw: Any) -> Manifest:
    if not isinstance(raw, dict) or raw.pop("format", None) != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT}")
    packages = tuple(PackageRecord(**record) for record in raw.pop("packages"))
    files = tuple(FileRecord(**record) for record in raw.pop("files"))
    return Manifest(packages=packages, files=files, **raw)


def held_out_projects(files_of: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
    """Which projects are held out, given language → project → number of files.

    Three in a hundred by a hash of their names; then, for a language with less than two in a hundred of its files held
    out, more of its projects in the order of that hash. Projects that are more than a twentieth of a language stay in
    training, unless a language has no others: then its smallest is held out, never its largest.
    """
    large = {
        project
        for counts in files_of.values()
        for project, count in counts.items()
        if count > _LARGE * sum(counts.values())
    }
    names = {project for counts in files_of.values() for project in counts}
    held = {project for project in names - large if _place(project) < _HELD_PROJECTS}
    for _, counts in sorted(files_of.items()):
        rest = sorted(set(counts) - large - held, key=_place)
        largest = max(sorted(counts), key=counts.__getitem__)
        if not rest and not held & set(counts):
            rest = sorted(set(counts) - {largest}, key=counts.__getitem__)[:1]
        for project in rest:
            if sum(counts[name] for name in held & set(counts)) >= _HELD_FILES * sum(counts.values()):
                break
            held.add(project)
    return frozenset(held)


def _place(project: str) -> float:
    """A number from 0 to 1 that depends on nothing but the name."""
    return int(hashlib.sha256(project.encode()).hexdigest()[:12], 16) / 16**12
