"""Where a model's file can come from: the seam `Source`, and the source that is a path on this machine.

A source brings bytes to a place it is told; it does not judge them. Whether they are right is decided afterwards by
the digest, the same for every source.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.store.integrity import CHUNK
from engine.store.progress import PullInterruptedError, SourceError, Stage
from engine.store.registry import ModelFile

SOURCE_VARIABLE = "LACUNA_MODEL_SOURCE"


@dataclass(frozen=True, slots=True)
class Fetch:
    """One file to bring.

    part: where its bytes belong when complete; on the same file system as `work`.
    work: a folder that only the holder of the model's lock uses and that outlives an interrupted pull.
    report: called with the stage and the bytes that are here.
    cancel: set when the file is not wanted any more.
    """

    file: ModelFile
    part: Path
    work: Path
    report: Callable[[Stage, int], None]
    cancel: threading.Event


class Source(Protocol):
    """A place a file can be brought from."""

    @property
    def label(self) -> str:
        """What a person calls it."""
        ...

    @property
    def copies(self) -> int:
        """How many times the file's size the disk must hold at the fullest moment."""
        ...

    def fetch(self, job: Fetch) -> None:
        """Put the whole file at `job.part`; what is in `job.work` may stay.

        Raises SourceError, and PullInterruptedError once `job.cancel` is set.
        """
        ...


class PathSource:
    """A file on this machine, or a folder that holds it under its own name. It is copied, never moved."""

    copies = 1

    def __init__(self, location: Path, label: str = "local path") -> None:
        self._location = location
        self.label = label

    def fetch(self, job: Fetch) -> None:
        """Copy the file. Raises SourceError(not_found) when it is not there."""
        source = self._location / job.file.name if self._location.is_dir() else self._location
        if not source.is_file():
            raise SourceError("not_found", f"{source} does not exist")
        try:
            self._copy(source, job)
        except OSError as error:
            raise os_failure(error) from error

    @staticmethod
    def _copy(source: Path, job: Fetch) -> None:
        done = 0
        with source.open("rb") as reader, job.part.open("wb") as writer:
            while chunk := reader.read(CHUNK):
                if job.cancel.is_set():
                    raise PullInterruptedError
                writer.write(chunk)
                done += len(chunk)
                job.report("downloading", done)
            os.fsync(writer.fileno())


def os_failure(error: OSError) -> SourceError:
    """The failure of a source that an operating system error means."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SourceError("no_space", "the disk filled up")
    return SourceError("failed", f"{error.strerror or error} ({error.filename})")
