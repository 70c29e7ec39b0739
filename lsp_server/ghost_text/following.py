"""The engine goes on into what already stands below the cursor."""

from __future__ import annotations

import re

from lsp_server import lexing
from lsp_server.ghost_text.surroundings import Surroundings

_ONLY_CLOSERS = re.compile(r"\s*[)\]}]+[)\]};,]*$")
_TELLING_CHARS = 6
_TELLING_START_CHARS = 4


def without_following(lines: list[str], place: Surroundings) -> list[str]:
    """`lines` up to where they become a copy, indentation included, of the lines below the cursor.

    A copy that lasts to the end of the text, or starts with it, counts; another after which the text goes its own
    way must hold enough letters to be no accident; brackets count when they close what the text has not opened.
    """
    below = [line.rstrip() for line in place.lines_after if line.strip()]
    full = [place.head + lines[0], *lines[1:]] if lines else []
    for number in range(1 if place.head.strip() else 0, len(full)):
        if full[number].strip() and _is_copy(full, number, below, place):
            return lines[:number]
    return lines


def _is_copy(full: list[str], number: int, below: list[str], place: Surroundings) -> bool:
    ours = [line.rstrip() for line in full[number:] if line.strip()]
    same = 0
    while same < min(len(ours), len(below)) and ours[same] == below[same]:
        same += 1
    letters = sum(each.isalnum() for line in ours[:same] for each in line)
    if same and not letters:
        return _closes_outer(full, number, place)
    if same == len(ours) or (same and not any(line.strip() for line in full[:number])):
        return True
    if same == len(ours) - 1 and same < len(below) and below[same].startswith(ours[same]):
        # The budget ended inside the copy's last line.
        return letters + sum(each.isalnum() for each in ours[same]) >= _TELLING_START_CHARS
    return letters >= _TELLING_CHARS


def _closes_outer(full: list[str], number: int, place: Surroundings) -> bool:
    """True when the brackets that start line `number` were open before the text began."""
    if not _ONLY_CLOSERS.match(full[number]):
        return False
    own = "\n".join(full[:number])[len(place.head) :]
    return len(lexing.stack_after(own, place.language, place.stack)) <= len(place.stack)
