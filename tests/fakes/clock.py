"""A clock for tests."""

from __future__ import annotations


class Clock:
    """A clock that moves only when told, or by a fixed step at each look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        self.now += self._step
        return self.now
