"""A step that does not end: how long one may take, noticing that it takes longer, and where it hangs.

A thread inside native code cannot be stopped. Whoever is told here that the loop hangs ends the process.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable

from engine.protocol.messages import Facts
from engine.protocol.stillness import Stillness

SHORTEST_LIMIT_S = 60.0
"""No machine that swaps, and no other program's burst, is taken for a hang."""

PASSES_IN_A_STEP = 50
"""A step is a chunk of the prompt or one pass; this many of the dearest pass measured is no step any more."""

_LOOKS = 20
_LONGEST_TICK_S = 2.0
_MOST_FRAMES = 20


def step_limit_s(wanted_s: float, facts: Facts) -> float:
    """After how many seconds a step is taken to hang: `wanted_s`, or by what passes take on this machine if that is 0.

    `facts.forward_ms` holds measured milliseconds by rows.
    """
    if wanted_s:
        return wanted_s
    dearest_s = max((ms for _, ms in facts.forward_ms), default=0.0) / 1000
    return max(SHORTEST_LIMIT_S, PASSES_IN_A_STEP * dearest_s)


async def until_stuck(pulse: Callable[[], int | None], limit_s: float) -> None:
    """Return once `pulse()`, which changes with every step and is None between jobs, has stood still for `limit_s`."""
    tick_s = min(_LONGEST_TICK_S, limit_s / _LOOKS)
    stillness = Stillness(limit_s, tick_s)
    while not stillness.look(pulse()):
        await asyncio.sleep(tick_s)


def whereabouts(thread: int | None) -> str:
    """Where the thread of that identity is, innermost place first: files, lines and names, never a value."""
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return "an unknown place"
    frames = traceback.extract_stack(frame)[-_MOST_FRAMES:]
    return " < ".join(f"{each.filename}:{each.lineno} {each.name}" for each in reversed(frames))
