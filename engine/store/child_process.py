"""A downloader run as a child process: watched by the bytes it has written, stopped when cancelled or stalled.

Owns the life of the child. It knows nothing of models. A child of its own can be stopped at any moment, which a
download in a thread cannot, and its files tell how far it is.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.store.progress import PullInterruptedError, SourceError

POLL_S = 0.2
STALL_S = 90.0
GRACE_S = 5.0

_NETWORK_MARKS = (
    "NewConnectionError",
    "NameResolutionError",
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "Connection refused",
    "Connection reset",
    "ConnectError",
    "ConnectTimeout",
    "ConnectionError",
    "ReadTimeout",
    "timed out",
    "ProxyError",
    "SSLError",
)


@dataclass(frozen=True, slots=True)
class Watched:
    """A command to run in `folder`, whose output goes to `log` and whose bytes grow below `growing`."""

    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    growing: Sequence[Path]
    log: Path


def run_watched(
    job: Watched,
    report: Callable[[int], None],
    cancel: threading.Event,
    stall_s: float = STALL_S,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run to the end, reporting the bytes written so far.

    Raises PullInterruptedError when cancelled, SourceError with the cause when the child failed or stalled.
    """
    with job.log.open("wb") as log:
        child = subprocess.Popen(
            list(job.command),
            env=dict(job.environ),
            cwd=job.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _watch(child, job, report, cancel, stall_s, clock)
        finally:
            _stop(child)
    if child.returncode != 0:
        raise failure_in(job.log.read_text(encoding="utf-8", errors="replace"))


def _watch(
    child: subprocess.Popen[bytes],
    job: Watched,
    report: Callable[[int], None],
    cancel: threading.Event,
    stall_s: float,
    clock: Callable[[], float],
) -> None:
    """Return when the child has ended; raise when it is not wanted any more or writes nothing for `stall_s`."""
    written, since = -1, clock()
    while child.poll() is None:
        if cancel.wait(POLL_S):
            raise PullInterruptedError
        now_written = _written(job)
        if now_written != written:
            written, since = now_written, clock()
            report(written)
        elif clock() - since > stall_s:
            raise SourceError("no_network", f"nothing arrived for {stall_s:.0f} s")
    report(_written(job))


def _written(job: Watched) -> int:
    """Bytes in the fullest of the growing folders: a file on its way from one to the other counts once."""
    return max(bytes_below(folder) for folder in job.growing)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the child if it still runs, and wait for it, so that it writes nothing afterwards."""
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def bytes_below(folder: Path) -> int:
    """Bytes of all files below `folder`; what another process removes during the count counts nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total


def failure_in(log: str) -> SourceError:
    """What went wrong, read from the child's output."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if "No space left on device" in log or "not enough space on the disk" in log:
        return SourceError("no_space", "the disk filled up")
    if "No module named pip" in log:
        return SourceError("failed", "this Python has no pip (`python -m ensurepip` adds it)")
    if any(mark in log for mark in _NETWORK_MARKS):
        return SourceError("no_network", "no route, or the connection broke")
    if "No matching distribution found" in log:
        return SourceError("not_found", "the package index does not have it")
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return SourceError("failed", errors[-1][:200] if errors else "it ended without saying why")
