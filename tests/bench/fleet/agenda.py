"""Simulated time: what is due is done in the order of its times, nothing ever sleeps."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Agenda:
    """Actions and their times, in seconds. Of two that are due at once the one named first goes first."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Action]] = []
        self._named = 0
        self._now = 0.0

    def now(self) -> float:
        """The simulated moment, in seconds from the start."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """A clock may be asked to wait; here nobody may, since waiting is an action of its own."""
        raise RuntimeError("in simulated time whoever waits names an action with `after`")

    def after(self, seconds: float, action: Action) -> None:
        """Do `action` so many seconds from now. Raises ValueError for a time that is past."""
        if seconds < 0:
            raise ValueError("what is past cannot be done any more")
        heapq.heappush(self._due, (self._now + seconds, self._named, action))
        self._named += 1

    def run(self, until: float) -> None:
        """Do everything that is due up to `until`, what becomes due meanwhile included; then it is `until`."""
        while self._due and self._due[0][0] <= until:
            self._now, _, action = heapq.heappop(self._due)
            action()
        self._now = max(self._now, until)
