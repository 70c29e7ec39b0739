"""The files of one model on this machine: where they lie and whether they are the right ones.

Owns the layout of a model's folder. It fetches nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.store.integrity import Stamp, sha256_of
from engine.store.progress import ignore
from engine.store.registry import Entry, ModelFile

FileState = Literal["missing", "good", "wrong"]


@dataclass(frozen=True, slots=True)
class Shelf:
    """`models` is the folder of all models; `entry` the model whose files are meant."""

    models: Path
    entry: Entry

    @property
    def folder(self) -> Path:
        """What the store keeps of this model; the files themselves, unless a person added them in place."""
        return self.models / self.entry.name

    @property
    def lock(self) -> Path:
        """The lock file that whoever changes the folder holds."""
        return self.models / f"{self.entry.name}.lock"

    @property
    def work(self) -> Path:
        """Where unfinished downloads wait."""
        return self.folder / "unfinished"

    @property
    def path(self) -> Path:
        """What a loader is given: the file of a one-file model, else the folder."""
        if self.entry.location is not None:
            return self.entry.location
        return self.folder / self.entry.files[0].name if len(self.entry.files) == 1 else self.folder

    def file(self, file: ModelFile) -> Path:
        """Where `file` lies or would lie."""
        location = self.entry.location
        if location is None:
            return self.folder / file.name
        return location / file.name if location.is_dir() else location

    def stamp(self, file: ModelFile) -> Path:
        """Where the stamp of `file` lies: always in the store, never beside a file a person added."""
        return self.folder / f"{file.name}.stamp.json"

    def stamped(self, file: ModelFile) -> bool:
        """Whether `file` is there, has not been touched since it was last read, and was right then."""
        stamp = Stamp.read(self.stamp(file))
        try:
            return stamp is not None and stamp == Stamp.of(self.file(file), file.sha256 or "")
        except OSError:
            return False

    def state(
        self,
        file: ModelFile,
        *,
        trust_stamp: bool = True,
        report: Callable[[int], None] = ignore,
        cancel: threading.Event | None = None,
    ) -> FileState:
        """Judge `file` by its digest, read again unless the stamp spares it. Raises OSError, PullInterruptedError."""
        path = self.file(file)
        if not path.is_file():
            return "missing"
        if trust_stamp and self.stamped(file):
            return "good"
        if file.size is not None and path.stat().st_size != file.size:
            return "wrong"
        found = Stamp.of(path, sha256_of(path, report, cancel))
        if found.sha256 != file.sha256:
            return "wrong"
        found.write(self.stamp(file))
        return "good"
