"""One measured point of a curve: `Point`. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """What something cost at one size. `ms` is a median, `most_ms` the worst of the same repeats.

    curve: which one. x: the size, in the unit the curve's name tells. extra: more numbers at this size, by name.
    """

    curve: str
    x: int
    ms: float
    most_ms: float
    extra: tuple[tuple[str, float], ...] = ()


def sizes(every: Sequence[int], *, quick: bool) -> Sequence[int]:
    """The sizes a curve is measured at: all, or every other one."""
    return every[::2] if quick else every


def point_of(curve: str, x: int, seconds: Sequence[float], **extra: float) -> Point:
    """The point that some repeats make."""
    found = tuple((name, round(value, 3)) for name, value in extra.items())
    return Point(curve, x, round(statistics.median(seconds) * 1000, 3), round(max(seconds) * 1000, 3), found)
