"""One engine per user and model: a lock held for the life of the process, and who is found when it is taken.

Owns the lock file only; the socket belongs to `listener`. The lock dies with its process, however that dies, so a
held lock always means a live engine.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Literal

import filelock

from engine.protocol.address import LOOPBACK, Address, make_private, read_endpoint
from engine.protocol.errors import EngineError

# As long as an engine that is asked to leave may take for it, and a little more.
LEAVING_LIMIT_S = 10.0
_POLL_S = 0.05

Claim = Literal["ours", "served"]


class EngineLock:
    """The right to serve at an address."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = filelock.FileLock(address.lock, mode=0o600, timeout=0)

    def claim(self, limit_s: float = LEAVING_LIMIT_S, pause: Callable[[float], None] = time.sleep) -> Claim:
        """Take the right to serve ("ours"), or find that another engine serves already ("served").

        Waits up to `limit_s` for an engine that is leaving. Raises EngineError(unsafe_address) for a run folder
        that cannot be trusted, EngineError(internal) when the lock is held but nobody answers.
        """
        make_private(self._address)
        for _ in range(max(1, round(limit_s / _POLL_S))):
            try:
                self._lock.acquire()
            except filelock.Timeout:
                if answers(self._address):
                    return "served"
                pause(_POLL_S)
            else:
                return "ours"
        raise EngineError(
            "internal",
            f"another process holds {self._address.lock} but does not answer",
            f"end the `engine run --model {self._address.model}` process that hangs, then start again",
        )

    def release(self) -> None:
        """Let another engine serve."""
        self._lock.release()


def answers(address: Address) -> bool:
    """Whether somebody accepts connections at `address`."""
    try:
        if address.transport == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(1.0)
                probe.connect(str(address.path))
        else:
            socket.create_connection((LOOPBACK, read_endpoint(address.path).port), timeout=1.0).close()
    except (OSError, EngineError):
        return False
    return True
