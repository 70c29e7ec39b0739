"""What a folder of computed files is made of, written inside it: whether it is still as it was when it was finished.

Owns the manifest file's framing (format, size and modification time of every file beside it) and where a model's
converted folder lies. What else a manifest holds is `conversion`'s. Imports no torch: `lacuna doctor` asks here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

FORMAT = 4
MANIFEST = "manifest.json"
FOLDED_PREFIX = "adapter-"
CONVERTED_SUFFIX = "-int8"

FolderState = Literal["none", "whole", "changed"]


def converted_folder(cache_dir: Path, name: str) -> Path:
    """Where the int8 form of the model `name` lies below its cache folder."""
    return cache_dir / f"{name}{CONVERTED_SUFFIX}"


def write_record(folder: Path, content: Mapping[str, Any]) -> None:
    """Finish `folder`: write its manifest, `content` with the format and every file's size and time. Raises OSError."""
    record = {"format": FORMAT, **content, "files": _files(folder)}
    (folder / MANIFEST).write_text(json.dumps(record), encoding="utf-8")


def read_record(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder this version finished; None if there is none, or a file was changed, cut or lost.

    A file's time is compared as well as its size: bytes that were changed in place keep the size. Reading the
    files whole to compare digests would cost more than loading them.
    """
    try:
        record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            return None
        untouched = all(_size_and_time(folder / name) == found for name, found in record["files"].items())
        return dict(record) if untouched else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def converted_state(folder: Path) -> FolderState:
    """What can be known of a converted folder without loading it; folded weights inside it count as part of it."""
    if not folder.is_dir():
        return "none"
    parts = (folder, *(part for part in folder.glob(f"{FOLDED_PREFIX}*") if part.is_dir()))
    return "whole" if all(read_record(part) is not None for part in parts) else "changed"


def _files(folder: Path) -> dict[str, list[int]]:
    return {path.name: _size_and_time(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _size_and_time(path: Path) -> list[int]:
    """Bytes and nanoseconds, as JSON holds them."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
