"""What engines of earlier protocol versions left in the run folder: removed where none of them lives.

A lock is held as long as its engine lives, so one that can be taken is nobody's. Owns no file of this version.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import filelock

from engine.protocol.address import Address, paths_of
from engine.protocol.messages import PROTOCOL_VERSION

_NAME = re.compile(r"(?P<engine>.+-v(?P<version>\d+))\.(?:lock|sock|json)")


def remove_leftovers(address: Address) -> None:
    """Remove files of earlier protocol versions whose engines are gone, for all models, from the folder of `address`.

    What cannot be removed stays.
    """
    folder = address.lock.parent
    named = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    for engine in {match["engine"] for match in named if int(match["version"]) < PROTOCOL_VERSION}:
        with contextlib.suppress(OSError, filelock.Timeout):
            _remove(folder / engine, address)


def _remove(place: Path, address: Address) -> None:
    lock = place.with_name(f"{place.name}.lock")
    with filelock.FileLock(lock, mode=0o600, timeout=0):
        for path in paths_of(place, address):
            path.unlink(missing_ok=True)
        # While it is held: who waits for it finds the file gone, and makes another.
        lock.unlink(missing_ok=True)
