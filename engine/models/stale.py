"""Converted weights that this version would not load again: removed once what takes their place is whole.

A folder is first renamed, which takes it away in one step: an engine that has its files mapped keeps what it mapped,
and where files in use cannot be moved (Windows) the folder stays. One that is being loaded or written is locked, and
stays too. Imports no torch.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from engine.models.folder_record import CONVERTED_SUFFIX, FOLDED_PREFIX, FORMAT, MANIFEST

_CONTENT = re.compile("[0-9a-f]{16}")


def remove_other_adapters(out: Path, kept: str) -> None:
    """Remove the folded weights of other adapters than `kept` from `out`, whose lock the caller holds."""
    for folder in out.glob(f"{FOLDED_PREFIX}*"):
        if folder.name != kept:
            _remove(folder)


def remove_replaced(out: Path, name: str) -> None:
    """Remove what the conversion `out` of the model `name` replaces.

    That is: beside it, those in an earlier format, whatever name the same weights had; and those of the weights that
    `name` stood for before, where the cache folder says by its name (`NAME-CONTENT`) that it holds one content.
    """
    for other in out.parent.glob(f"*{CONVERTED_SUFFIX}"):
        if other != out and _format_of(other) < FORMAT:
            with _unused([other]) as unused:
                if unused:
                    _remove(other)
    if not _is_content_of(out.parent, name):
        return
    for cache in out.parent.parent.iterdir():
        if cache != out.parent and _is_content_of(cache, name):
            with _unused(cache.glob(f"*{CONVERTED_SUFFIX}")) as unused:
                if unused:
                    _remove(cache)


def _is_content_of(cache: Path, name: str) -> bool:
    prefix = f"{name}-"
    return cache.name.startswith(prefix) and _CONTENT.fullmatch(cache.name.removeprefix(prefix)) is not None


def _format_of(folder: Path) -> int:
    """The format a folder says it has; 0 where it says none."""
    try:
        return int(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["format"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0


@contextmanager
def _unused(folders: Iterator[Path] | list[Path]) -> Iterator[bool]:
    """Whether nobody loads or writes any of `folders`; nobody begins to inside the block."""
    with contextlib.ExitStack() as stack:
        try:
            for folder in folders:
                lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"), timeout=0)
                stack.enter_context(lock)
        except (filelock.Timeout, OSError):
            yield False
        else:
            yield True


def _remove(folder: Path) -> None:
    """Remove `folder` if it can be moved; what cannot be removed then is left under another name."""
    aside = folder.with_name(f".stale-{folder.name}")
    with contextlib.suppress(OSError):
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
