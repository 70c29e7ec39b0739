"""Whether a file is what the registry says: SHA-256 of the whole file, and the stamp that remembers the answer.

The digest alone decides. A stamp only spares reading a file again that has not been touched since it was read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.store.progress import PullInterruptedError, ignore

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file's size in bytes, modification time in nanoseconds, and the SHA-256 it had at that time."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, file: Path, sha256: str) -> Stamp:
        """The stamp of `file` as it is now. Raises OSError."""
        stat = file.stat()
        return cls(stat.st_size, stat.st_mtime_ns, sha256)

    @classmethod
    def read(cls, stamp: Path) -> Stamp | None:
        """The stamp kept at `stamp`, None when there is none that can be read."""
        try:
            table = json.loads(stamp.read_text(encoding="utf-8"))
            return cls(int(table["size"]), int(table["mtime_ns"]), str(table["sha256"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, stamp: Path) -> None:
        """Keep it at `stamp`. A folder that cannot be written only costs reading the file again the next time."""
        part = stamp.with_name(f"{stamp.name}.{os.getpid()}.part")
        with contextlib.suppress(OSError):
            stamp.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(asdict(self)), encoding="utf-8")
            part.replace(stamp)


def sha256_of(
    file: Path,
    report: Callable[[int], None] = ignore,
    cancel: threading.Event | None = None,
) -> str:
    """Lower-case hex SHA-256 of the whole file; `report` gets the bytes read so far.

    Raises OSError, and PullInterruptedError once `cancel` is set.
    """
    digest = hashlib.sha256()
    done = 0
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            if cancel is not None and cancel.is_set():
                raise PullInterruptedError
            digest.update(chunk)
            done += len(chunk)
            report(done)
    return digest.hexdigest()
