"""A training run's folder: what its files are called, who may write it, and whose settings it holds.

One trainer at a time holds the folder's lock, for as long as it lives; readers need none, as files appear whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from engine.training.run_settings import RunSettings, read_settings

CHECKPOINT = "checkpoint.safetensors"
METRICS = "metrics.jsonl"
SETTINGS = "settings.json"
LOCK = "run.lock"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made if need be. Raises ValueError when another trainer does; OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as fault:
        raise ValueError(
            f"another trainer is writing {folder}: end it first, or give this run a folder of its own"
        ) from fault
    try:
        yield
    finally:
        lock.release()


def settings_of(folder: Path) -> Path | None:
    """Where the settings of the run in the folder are kept; None for a folder without a run."""
    stored = folder / SETTINGS
    return stored if stored.exists() else None


def require_same_settings(folder: Path, settings: RunSettings) -> None:
    """Raise ValueError when the folder holds a run with other settings."""
    stored = settings_of(folder)
    if stored and read_settings(stored, {}) != settings:
        raise ValueError(f"{folder} holds a run with other settings: give this one a folder of its own")


def keep_settings(folder: Path, settings: RunSettings) -> None:
    """Write a new run's settings into the folder, which must be there; those of a present one stay. Raises OSError."""
    if settings_of(folder) is None:
        partial = folder / f".{SETTINGS}.partial"
        partial.write_text(settings.to_json(), encoding="utf-8")
        os.replace(partial, folder / SETTINGS)  # noqa: PTH105
