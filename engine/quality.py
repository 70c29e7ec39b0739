"""Whether a denoised text is fit to be shown as it is: doubt and repetition, told in words. Pure.

Nothing is cut or changed here: repetition is often right in code (a table of zeros), so it is only ever told.
Whether the text parses is for those who see the whole document to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REPETITION_WINDOW = 32
LONGEST_PERIOD = 8


@dataclass(frozen=True, slots=True)
class Gates:
    """least_confidence: mean probability of a text's tokens below which it is doubtful; 0 is off."""

    least_confidence: float = 0.25
    window: int = REPETITION_WINDOW
    longest_period: int = LONGEST_PERIOD


def faults(ids: Sequence[int], confidence: float, gates: Gates | None = None) -> tuple[str, ...]:
    """What speaks against a text, in words; empty when nothing does. A confidence that is no number is doubt."""
    gates = gates or Gates()
    found = []
    if ids and not confidence >= gates.least_confidence:
        found.append(f"confidence {confidence:.2f} is low")
    if period := repeated_period(ids, gates.window, gates.longest_period):
        noun = "one token" if period == 1 else f"{period} tokens"
        found.append(f"{gates.window} tokens in a row repeat {noun}")
    return tuple(found)


def repeated_period(ids: Sequence[int], window: int, longest: int) -> int:
    """The shortest period, up to `longest`, that some `window` ids in a row consist of; 0 when there is none."""
    for period in range(1, min(longest, window - 1) + 1):
        run = period
        for place in range(period, len(ids)):
            run = run + 1 if ids[place] == ids[place - period] else period
            if run >= window:
                return period
    return 0
