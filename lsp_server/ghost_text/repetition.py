"""The engine goes round in circles: the same lines again and again, or the lines above once more."""

from __future__ import annotations

from lsp_server.ghost_text.surroundings import Surroundings

_LONGEST_BLOCK = 12
_DATA_ROWS = 8


def without_repetition(lines: list[str], place: Surroundings) -> list[str]:
    """`lines` up to the first end of a block that then comes again and again.

    One line must stand three times in a row, a pair three times, more lines twice. Rows of data, which end with a
    comma, may well be equal and must be many.
    """
    full = [place.head + lines[0], *lines[1:]] if lines else []
    filled = [number for number, line in enumerate(full) if line.strip()]
    texts = [full[number].rstrip() for number in filled]
    for start in range(len(texts)):
        for size in range(1, min(_LONGEST_BLOCK, (len(texts) - start) // 2) + 1):
            if _runs(texts, start, size) >= _runs_needed(texts[start : start + size]):
                return lines[: filled[start + size - 1] + 1]
    return lines


def without_preceding(lines: list[str], place: Surroundings) -> list[str]:
    """`lines` without a copy, at their start, of the lines above; one line counts only if nothing else is left."""
    if place.head.strip() or not lines:
        return lines
    full = [place.head + lines[0], *lines[1:]]
    filled = [number for number, line in enumerate(full) if line.strip()]
    above = [line.rstrip() for line in place.lines_before if line.strip()]
    for size in range(min(_LONGEST_BLOCK, len(filled), len(above)), 0, -1):
        copied = [full[number].rstrip() for number in filled[:size]] == above[-size:]
        if copied and (size > 1 or (len(filled) == 1 and _is_telling(above[-1]))):
            return _continued(lines[filled[size - 1] + 1 :], place)
    return lines


def _continued(lines: list[str], place: Surroundings) -> list[str]:
    """The lines left over; the first loses the indentation that the cursor's line has already."""
    rest = lines[next((number for number, line in enumerate(lines) if line.strip()), len(lines)) :]
    return [rest[0].removeprefix(place.head), *rest[1:]] if rest else []


def _runs(texts: list[str], start: int, size: int) -> int:
    block, count = texts[start : start + size], 1
    while texts[start + count * size : start + (count + 1) * size] == block:
        count += 1
    return count


def _runs_needed(block: list[str]) -> int:
    if all(line.endswith(",") for line in block) or not any(_is_telling(line) for line in block):
        return _DATA_ROWS
    return 3 if len(block) < 3 else 2


def _is_telling(line: str) -> bool:
    return sum(each.isalnum() for each in line) >= 2 and not line.endswith(",")
