"""What a pull tells whoever waits for it, and the failures it can end in.

Pure: the clock is given, nothing is printed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from engine.protocol.errors import EngineError

Stage = Literal["waiting", "probing", "downloading", "assembling", "verifying", "skipped", "done"]
Cause = Literal["no_network", "no_space", "wrong_digest", "not_found", "interrupted", "failed"]

WINDOW_S = 8.0


@dataclass(frozen=True, slots=True)
class PullProgress:
    """One report of a pull.

    `done` and `total` in bytes (total 0: not known), `speed` in bytes per second over the last seconds, `left_s`
    the seconds to go at that speed (None: not known). `message` is a sentence for a person; it is set when a stage
    begins and empty in the reports that only count.
    """

    stage: Stage
    source: str
    message: str
    done: int = 0
    total: int = 0
    speed: float = 0.0
    left_s: float | None = None


class SpeedMeter:
    """Bytes per second over a sliding window, so that a stall shows and a fast start does not flatter the rest."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def restart(self) -> None:
        """Begin again: another stage counts other bytes."""
        self._samples.clear()

    def speed(self, done: int) -> float:
        """Take in that `done` bytes are here now; the present speed in bytes per second, 0.0 at the start."""
        now = self._clock()
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()
        then, before = self._samples[0]
        return max(0.0, (done - before) / (now - then)) if now > then else 0.0


class PullInterruptedError(Exception):
    """The person or program that asked for the pull does not want it any more."""


class SourceError(Exception):
    """A source could not bring the file; the next one may. `reason` completes the sentence "SOURCE: …"."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause: Cause = cause
        self.reason = reason


_KINDS: Mapping[Cause, str] = MappingProxyType({"wrong_digest": "model_corrupt", "no_space": "no_space"})


class PullError(EngineError):
    """A pull failed. `cause` says why in one word; `message` and `remedy` say it to a person."""

    def __init__(self, cause: Cause, message: str, remedy: str) -> None:
        super().__init__(_KINDS.get(cause, "model_missing"), message, remedy)
        self.cause: Cause = cause


def ignore(_report: object) -> None:
    """Where reports go that nobody reads."""
