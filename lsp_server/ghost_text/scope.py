"""An automatic completion ends with the scope the cursor is in."""

from __future__ import annotations

import re

from lsp_server.ghost_text.surroundings import Surroundings
from lsp_server.indentation import blanks_of, width_of

_ONLY_CLOSERS = re.compile(r"\s*(?:[)\]}]|end\b|</[\w.:-]*>)[)\]};,]*$")
_DEFINES = re.compile(
    r"\s*(?:@|(?:(?:export|default|async|public|private|protected|static|pub|local|abstract)\s+)*"
    r"(?:def|class|function|func|fn|interface|struct|enum|module|trait|impl)\b)"
)


def within_scope(lines: list[str], place: Surroundings) -> list[str]:
    """`lines` up to the first that stands left of the scope's own; only brackets and `end` may close it.

    A definition that is begun at the cursor is the scope: the next one behind a blank line is another.
    """
    full = [place.head + lines[0], *lines[1:]] if lines else []
    scope = _scope_width(full, place)
    kept, is_closed = _first_filled(full, place) + 1, False
    for number in range(kept, len(full)):
        line = full[number]
        if not line.strip():
            continue
        is_left = _width(line, place) < scope
        is_closer = bool(_ONLY_CLOSERS.match(line))
        if (is_left or is_closed) and not (is_left and is_closer):
            break
        if _is_next_definition(full, number, scope, place):
            break
        is_closed = is_closed or is_left
        kept = number + 1
    return lines[:kept]


def _first_filled(full: list[str], place: Surroundings) -> int:
    """The first line that shows the scope's indentation: not the header the cursor stands behind."""
    filled = [number for number, line in enumerate(full) if line.strip()]
    is_header_only = len(filled) > 1 and place.head.strip() and full[0].strip() == place.head.strip()
    return (filled[1] if is_header_only else filled[0]) if filled else 0


def _scope_width(full: list[str], place: Surroundings) -> int:
    return _width(full[_first_filled(full, place)], place) if full else 0


def _width(line: str, place: Surroundings) -> int:
    return width_of(blanks_of(line), len(place.unit.replace("\t", "    ")))


def _is_next_definition(full: list[str], number: int, scope: int, place: Surroundings) -> bool:
    if _width(full[number], place) > scope or full[number - 1].strip():
        return False
    begun = next((line for line in full if line.strip()), "")
    return bool(_DEFINES.match(begun)) and not _ONLY_CLOSERS.match(full[number])
