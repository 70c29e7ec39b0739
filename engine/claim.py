"""One engine per user and model: a lock held for the life of the process, and who is found when it is taken.

Owns the lock file, and beside it the record of who holds the lock; the socket belongs to `listener`. The lock dies
with its process, however that dies, so a held lock always means a live engine. A live one that has stopped answering
(suspended, or hanging where no thread of it can run) holds the lock for nobody's good: who wants to serve ends it. Its
socket tells which process it is, and where that was removed meanwhile, the record.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Literal

import filelock
import psutil

from engine.probe import Found, probe
from engine.protocol.address import Address, make_private
from engine.protocol.errors import EngineError

log = logging.getLogger(__name__)

# As long as an engine that is asked to leave may take for it, and a little more.
LEAVING_LIMIT_S = 10.0
_POLL_S = 0.05
# So many probes in a row, each of some seconds, that an engine under a heavy load would have answered one.
MUTE_PROBES = 4
# Less than the system takes to give a number to another process.
_SAME_MOMENT_S = 1.0

Claim = Literal["ours", "served"]


class EngineLock:
    """The right to serve at an address."""

    def __init__(self, address: Address, look: Callable[[Address], Found] = probe) -> None:
        self._address = address
        self._look = look
        self._lock = filelock.FileLock(address.lock, mode=0o600, timeout=0)
        self._file: tuple[int, int] | None = None
        self._holder = address.lock.with_suffix(".holder")

    def claim(self, limit_s: float = LEAVING_LIMIT_S, pause: Callable[[float], None] = time.sleep) -> Claim:
        """Take the right to serve ("ours"), or find that another engine serves already ("served").

        Waits up to `limit_s` for an engine that is leaving, and ends one that does not answer, or that has no socket
        any more after that time. Raises EngineError(unsafe_address) for a run folder that cannot be trusted or written
        to, EngineError(internal) when the lock is held and nobody is found who holds it.
        """
        make_private(self._address)
        claimed = self._wait(limit_s, pause)
        if claimed is None and (holder := self._recorded()) is not None:
            _end(holder)
            claimed = self._wait(limit_s, pause)
        if claimed is None:
            raise self._hangs()
        return claimed

    def _wait(self, limit_s: float, pause: Callable[[float], None]) -> Claim | None:
        """Take the lock or find who serves, within the limit; None where it stays held and nobody listens."""
        mute: list[Found] = []
        for _ in range(max(1, round(limit_s / _POLL_S))):
            if self._acquire():
                return "ours"
            found = self._look(self._address)
            if found.state == "answers":
                return "served"
            mute = [*mute, found] if found.state == "mute" else []
            if len(mute) >= MUTE_PROBES:
                _end(_process_of(mute))
                mute = []
            pause(_POLL_S)
        return None

    def evict(self, limit_s: float = LEAVING_LIMIT_S, pause: Callable[[float], None] = time.sleep) -> int | None:
        """End the engine that answers nobody, and wait up to `limit_s` until its lock is free: its process.

        None where somebody answers after all, or nobody is there any more; nothing is ended then. Raises
        EngineError(internal), having ended nothing, where whoever listens holds no lock or nobody says which process
        it is, and where the process that was ended does not go.
        """
        mute: list[Found] = []
        while len(mute) < MUTE_PROBES:
            found = self._look(self._address)
            if found.state != "mute":
                return None
            mute.append(found)
        pid = _process_of(mute)
        if pid is None or not self._is_held():
            raise self._hangs()
        _end(pid)
        for _ in range(max(1, round(limit_s / _POLL_S))):
            if not self._is_held():
                return pid
            pause(_POLL_S)
        raise self._hangs()

    def is_ours(self) -> bool:
        """Whether the lock that others would take is the one held here: its file may have been removed."""
        return self._file is not None and _identity(self._address) == self._file

    def release(self) -> None:
        """Let another engine serve."""
        self._file = None
        self._lock.release()

    def _is_held(self) -> bool:
        """Whether another process has the lock: only an engine takes it."""
        if not self._address.lock.exists():
            return False
        if not self._acquire():
            return True
        self.release()
        return False

    def _hangs(self) -> EngineError:
        return EngineError(
            "internal",
            f"another process holds {self._address.lock} but does not answer",
            f"end the `engine run --model {self._address.model}` process that hangs, then start again",
        )

    def _acquire(self) -> bool:
        try:
            self._lock.acquire()
        except filelock.Timeout:
            return False
        except OSError as fault:
            raise EngineError(
                "unsafe_address",
                f"{self._address.lock} cannot be made ({fault.strerror})",
                "make room there and make it writable, or set LACUNA_HOME to a folder that is",
            ) from None
        self._file = _identity(self._address)
        self._record()
        return True

    def _record(self) -> None:
        """Write down who holds the lock. A record that cannot be written must not be somebody else's."""
        try:
            record = " ".join(map(str, (os.getpid(), *_beginning(os.getpid()))))
            self._holder.write_text(record, encoding="ascii")
            self._holder.chmod(0o600)
        except OSError:
            with contextlib.suppress(OSError):
                self._holder.unlink()

    def _recorded(self) -> int | None:
        """The process that wrote the record, if it still lives and is not this one."""
        try:
            pid, *began = self._holder.read_text(encoding="ascii").split()
            pairs = zip(_beginning(int(pid)), map(float, began), strict=True)
            is_it = any(abs(found - recorded) < _SAME_MOMENT_S for found, recorded in pairs)
        except (OSError, ValueError, OverflowError, psutil.Error):
            return None
        return int(pid) if is_it and int(pid) != os.getpid() else None


def _beginning(pid: int) -> tuple[float, float]:
    """When a process began, in seconds since the epoch and since the machine did; raises psutil.Error.

    Somebody may set the clock meanwhile: then Linux and macOS tell another time of the day, and Windows another one
    since the machine began.
    """
    boot = psutil.boot_time()
    began = psutil.Process(pid).create_time()
    return began, began - boot


def _identity(address: Address) -> tuple[int, int] | None:
    try:
        found = address.lock.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _process_of(mute: list[Found]) -> int | None:
    """The process that was asked and said nothing, where the system tells; by now another may listen there."""
    return next((found.pid for found in reversed(mute) if found.pid is not None), None)


def _end(pid: int | None) -> None:
    """End the process that says nothing; where the system does not tell which it is, nothing is ended."""
    if pid is None:
        return
    log.warning("the engine that holds the lock (process %d) does not answer; ending it", pid)
    # Not asked to leave: one that is suspended, or hangs, hears nothing.
    with contextlib.suppress(OSError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
