"""What the surroundings of a gap tell of its length: tokens of the lines around it and of its own line. Pure."""

from __future__ import annotations

from itertools import chain, zip_longest

from engine.diffusion.length import GapShape
from engine.models.base import Tokenizer

LINES = 6
"""How many lines on each side are looked at."""


def gap_shape(prefix: str, suffix: str, present: int, tokenizer: Tokenizer) -> GapShape:
    """The shape of the gap between two texts that holds `present` tokens now."""
    *before, head = prefix.split("\n")
    tail, *behind = suffix.split("\n")
    above = [line for line in reversed(before) if line.strip()][:LINES]
    below = [line for line in behind if line.strip()][:LINES]
    nearest = chain.from_iterable(zip_longest(above, below, fillvalue=""))
    lines = tuple(len(tokenizer.encode(f"{line}\n")) for line in nearest if line)
    on_line = sum(len(tokenizer.encode(side)) for side in (head, tail) if side.strip())
    return GapShape(present, lines, on_line, whole_lines=not head.strip() and not tail.strip())
