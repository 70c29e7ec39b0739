"""How much of the machine somebody else used while an engine was asked: `Watch`. A time taken then is worth nothing.

What counts is all processor time of the machine less that of the process asked, time stolen by a host included.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import perf_counter
from typing import Self

import psutil

MOST_FOREIGN = 0.08
"""Of all cores' time. The system's own ticks are 10 ms, so that a short case cannot be told from a quiet one below."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds since some start: wall clock, processor time of everybody, processor time of one process."""

    wall: float
    busy: float
    own: float

    @classmethod
    def now(cls, process: psutil.Process) -> Self:
        """Look at the machine and one of its processes."""
        every, own = psutil.cpu_times(), process.cpu_times()
        idle = every.idle + getattr(every, "iowait", 0.0)
        # Time of guests is in `user` already.
        guests = getattr(every, "guest", 0.0) + getattr(every, "guest_nice", 0.0)
        return cls(perf_counter(), sum(every) - idle - guests, own.user + own.system)


@dataclass(slots=True)
class Watch:
    """Adds up what others used over many questions. seconds: of all cores together."""

    seconds: float = 0.0
    wall: float = 0.0

    def add(self, before: Moment, after: Moment) -> None:
        """Take in the time between two looks."""
        self.seconds += (after.busy - before.busy) - (after.own - before.own)
        self.wall += after.wall - before.wall

    @property
    def foreign(self) -> float:
        """The share of all cores' time that others used, 0 to 1."""
        if not self.wall:
            return 0.0
        return min(1.0, max(0.0, self.seconds / self.wall / (os.cpu_count() or 1)))
