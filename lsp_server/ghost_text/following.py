"""The engine goes on into what already stands below the cursor."""

from __future__ import annotations

import re

from lsp_server import lexing
from lsp_server.ghost_text.surroundings import Surroundings

_ONLY_CLOSERS = re.compile(r"\s*[)\]}][)\]};,]*$")
_RECURS = re.compile(r"\s*(?:return|break|continue|pass|raise|throw|yield|else|try|finally|end)\b")
_TELLING_CHARS = 6
_TELLING_START_CHARS = 4


def without_following(lines: list[str], place: Surroundings) -> list[str]:
    """`lines` up to where they become a copy, indentation included, of the lines below the cursor.

    A copy that lasts to the end of the text counts; one after which the text goes its own way must hold enough
    letters to be no accident; brackets count when they close what the text has not opened.
    """
    rest = [place.head + place.tail] if place.is_in_front_of_line else []
    below = [line.rstrip() for line in [*rest, *place.lines_after] if line.strip()]
    full = [place.head + lines[0], *lines[1:]] if lines else []
    full = full[: _end_of_rest(full, below, place)]
    lines = lines[: len(full)]
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
    if same == len(ours):
        return True
    if same == len(ours) - 1 and same < len(below) and below[same].startswith(ours[same]):
        # The budget ended inside the copy's last line.
        return letters + sum(each.isalnum() for each in ours[same]) >= _TELLING_START_CHARS
    return sum(_weight(line) for line in ours[:same]) >= _TELLING_CHARS


def _weight(line: str) -> int:
    """How telling a line is: its letters, half of them where the statement is one that code repeats a lot."""
    letters = sum(each.isalnum() for each in line)
    return letters // 2 if _RECURS.match(line) else letters


def _end_of_rest(full: list[str], below: list[str], place: Surroundings) -> int:
    """How many lines there are until the text has said the rest of the cursor's line and goes on below it."""
    rest = place.tail.strip()
    if _weight(rest) < _TELLING_START_CHARS:
        return len(full)
    if place.is_in_front_of_line:
        below = below[1:]
    for number, line in enumerate(full):
        further = [each.rstrip() for each in full[number + 1 :] if each.strip()]
        is_end = line.rstrip().endswith(rest) and line.strip() != rest
        if is_end and further and further[:1] == below[:1]:
            return number + 1
    return len(full)


def _closes_outer(full: list[str], number: int, place: Surroundings) -> bool:
    """True when the brackets that start line `number` were open before the text began."""
    if not _ONLY_CLOSERS.match(full[number]):
        return False
    own = "\n".join(full[:number])[len(place.head) :]
    return len(lexing.stack_after(own, place.language, place.stack)) <= len(place.stack)
