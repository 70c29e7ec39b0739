"""The part of a document that a person wants changed, and what is to be done with it.

Pure. Owns which part of a selection is denoised when it is filled from its surroundings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """`[start, end)` of a document is to change; an empty `instruction` fills it from its surroundings.

    `text` is what stands there as the engine is to see it: without the comments that held the instruction. `hint` is
    shown to the engine in front of it and no part of the result. With `only_prose` nothing but comments and docstrings
    may be added, and nothing else be changed. Another `seed` than 0 asks for another text than the likeliest one.
    """

    start: int
    end: int
    text: str
    instruction: str = ""
    hint: str = ""
    only_prose: bool = False
    seed: int = 0


def to_rewrite(
    text: str, start: int, end: int, instruction: str, *, only_prose: bool = False, seed: int = 0
) -> Passage:
    """A selection of `text` that is to follow `instruction`."""
    return Passage(start, end, text[start:end], instruction, only_prose=only_prose, seed=seed)


def to_fill(text: str, start: int, end: int) -> Passage:
    """The gap in a selection of `text` that is to be filled from its surroundings."""
    first, last = gap_of(text, start, end)
    return Passage(first, last, text[first:last])


def gap_of(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of a selection that filling it denoises: without the blanks and line ends around what it holds.

    The indentation in front and the line end behind stay known text, so they cannot get lost. In a selection of
    blanks alone the first indentation and the last line end stay.
    """
    selected = text[start:end]
    core = selected.strip()
    if core:
        lead = len(selected) - len(selected.lstrip())
        return start + lead, start + lead + len(core)
    body = selected.removesuffix("\n").removesuffix("\r")
    return start + len(body) - len(body.lstrip(" \t")), start + len(body)
