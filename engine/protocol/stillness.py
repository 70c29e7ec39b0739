"""How long something has not moved, counted in looks and not by a clock. Pure.

Both sides of the door watch: the engine its own steps, a client its engine. Either may be stopped meanwhile (a laptop
sleeps, a terminal suspends the editor and the server with it) and wake to a clock that ran on, or that was put forward.
Looks do not run on: who was stopped has not looked, and what it watches gets its time.
"""

from __future__ import annotations

import math


class Stillness:
    """Looks at one thing, about every `tick_s` seconds, for who wants to know whether it stood still for `limit_s`."""

    def __init__(self, limit_s: float, tick_s: float) -> None:
        # Two looks see a change between them; a limit below a tick would take the first look for a verdict.
        self._limit = max(1, math.ceil(limit_s / tick_s))
        self._mark: object = None
        self._looks = 0

    def look(self, mark: object) -> bool:
        """Whether `mark` has been the same for the whole limit. None is nothing to watch: counting begins anew."""
        if mark is None or mark != self._mark:
            self._mark = mark
            self._looks = 0
            return False
        self._looks += 1
        return self._looks >= self._limit
