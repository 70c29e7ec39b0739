"""The engine's lines, indented for the place they go to; the cursor line's own indentation counts once."""

from __future__ import annotations

from lsp_server.ghost_text.surroundings import Surroundings
from lsp_server.indentation import blanks_of, fitted, opens_block, width_of


def placed(text: str, place: Surroundings) -> list[str]:
    """The lines of `text`: the first continues the cursor's line, the others carry their own indentation."""
    if place.head.strip():
        return fitted(text.split("\n"), head=place.head, origin="", unit=place.unit, language=place.language)
    lines = _without_blank_start(text.split("\n"), place)
    origin = blanks_of(lines[0])
    more = _missing_indent(origin, place)
    lines[0] = lines[0][len(origin) :]
    lines = fitted(lines, head=place.head + more, origin=origin, unit=place.unit, language=place.language)
    return [more + lines[0], *lines[1:]]


def _without_blank_start(lines: list[str], place: Surroundings) -> list[str]:
    """Blank lines at the start go, unless they part a new paragraph at column 0 from the line above."""
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    is_apart = not place.lines_before or not place.lines_before[-1].strip()
    if first == len(lines) or place.head or is_apart or place.tail.strip():
        return lines[first:] or [""]
    return ["", *lines[first - min(first, 2) + 1 :]] if first else lines


def _missing_indent(origin: str, place: Surroundings) -> str:
    """How much of the engine's own indentation the cursor's line still lacks, in the document's style."""
    width = len(place.unit.replace("\t", "    "))
    above = place.last_line_before
    if not place.head and place.stack and place.stack[-1] in ("(", "["):
        return origin  # Continuation lines stand where they like.
    here, theirs = width_of(place.head, width), width_of(origin, width)
    opened = opens_block(above, place.language)
    wanted = width_of(blanks_of(above), width) + (width if opened else 0)
    # The engine may count from column 0 or from the cursor; whichever hits the column the line above asks for.
    fits = {theirs, here + theirs} if opened else ({theirs} if not place.head and theirs <= wanted else set())
    target = wanted if opened and wanted in fits else (theirs if fits and not opened else here)
    levels, rest = divmod(max(target - here, 0), width)
    return place.unit * levels + " " * rest
