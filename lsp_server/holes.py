"""Holes: the places in a text that a person left to be filled.

Pure. Owns what counts as a hole. A marker stands for itself wherever it is written, but for `...` and markers with a
blank in them (`pass  # fill`): those are whole statements and must be alone in a body, since they are ordinary code
elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_ELLIPSIS = "..."
JOINED = re.compile(r"[ \t]*(?:\r\n?|\n)?[ \t]*")
"""What may stand between two markers that are one hole."""
# A body on the line of what it belongs to: `def f(): ...`.
_HEAD = r"(?:(?:async )?(?:def|class|for|with|while|if|elif|else|try|except|finally|match|case)\b[^\n\r]*:)"


class Hole(NamedTuple):
    """`[start, end)` is to be replaced by `lead` and what belongs there.

    `lead` is known: the line end and the indentation of a line that is not there yet.
    """

    start: int
    end: int
    lead: str = ""


def find_holes(text: str, markers: Sequence[str], start: int = 0, end: int | None = None) -> list[Hole]:
    """The holes of `text` that lie wholly within `[start, end)`, in order and apart.

    Markers with nothing but blanks and one line end between them are one hole: nobody could say where the text of one
    ends.
    """
    stop = len(text) if end is None else end
    # A marker that must be alone on its line is judged by the whole line.
    first = max(text.rfind(mark, 0, start) for mark in ("\n", "\r")) + 1
    last = min((place for mark in ("\n", "\r") if (place := text.find(mark, stop)) >= 0), default=len(text))
    patterns = [_pattern(marker) for marker in markers if marker.strip()]
    matches = [match for pattern in patterns for match in pattern.finditer(text, first, last)]
    found = sorted((Hole(*match.span("hole")) for match in matches), key=lambda hole: (hole.start, -hole.end))
    holes: list[Hole] = []
    for hole in found:
        is_apart = not holes or hole.start >= holes[-1].end
        if not is_apart or hole.start < start or hole.end > stop:
            continue
        joins = holes and JOINED.fullmatch(text, holes[-1].end, hole.start)
        first = holes.pop().start if joins else hole.start
        holes.append(Hole(first, hole.end))
    return holes


def _pattern(marker: str) -> re.Pattern[str]:
    words = r"[ \t]+".join(map(re.escape, marker.split()))
    if marker.strip() != _ELLIPSIS and len(marker.split()) == 1:
        return re.compile(f"(?P<hole>{_bordered(words, marker.strip())})")
    head = rf"[ \t]*(?:{_HEAD}[ \t]*)?"
    return re.compile(rf"(?:^|(?<=\r)){head}(?P<hole>{words})[ \t]*(?=[\n\r]|\Z)", re.MULTILINE)


def _bordered(words: str, marker: str) -> str:
    """A marker of letters is no part of a longer word."""
    first = r"(?<!\w)" if marker[0].isalnum() or marker[0] == "_" else ""
    last = r"(?!\w)" if marker[-1].isalnum() or marker[-1] == "_" else ""
    return f"{first}{words}{last}"
