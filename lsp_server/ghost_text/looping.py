"""The engine goes round in circles inside one line: the same words again and again, up to where it was stopped."""

from __future__ import annotations

import unicodedata

from lsp_server import lexing
from lsp_server.ghost_text.surroundings import Surroundings

_LONGEST_UNIT = 120
_LEAST_CHARS = 24
_REPEATS = 4
# What may be a row of a table says the same more often than any sentence or statement does.
_ROW_REPEATS = 16
_READ_CHARS = 2_000
# No statement, item or word ends with these, but what joins it to the next one does.
_JOINTS = " \t,;.:+-*/%&|^=<>!?~@([{"
_QUOTES = "\"'`"
_JOINING_WORDS = ("and", "or", "not", "in", "is", "if", "else")


def without_looping(lines: list[str], place: Surroundings) -> list[str]:
    """`lines` without what goes round in circles at their end: of the last line only what its first round says.

    A text that goes on behind its rounds, if only by a bracket that closes them, has found its way out: it stays. So
    do dashes and other rules, and rows of data where the text around has such rows. What the line says in front of the
    cursor may be the first round; where neither a letter, a digit nor a string is left, the line goes as a whole.
    """
    last = next((number for number in reversed(range(len(lines))) if lines[number].strip()), None)
    if last is None:
        return lines
    head = place.head if last == 0 else ""
    line, said = head + lines[last].rstrip(), len(head)
    size, start = _rounds(line, said)
    unit = line[start : start + size]
    if not size or (_is_row(unit) and _stands_twice(unit, place)):
        return lines
    opened = lexing.stack_after("".join(f"{above}\n" for above in lines[:last]), place.language, place.stack)
    texts = [line[said:end] for end in _ends_of_round(line, said, start, size)]
    # Brackets and strings must not be torn, unless every place would tear them.
    whole = (text for text in texts if text and lexing.stack_after(text, place.language, opened) == opened)
    left = next(whole, texts[0])
    return [*lines[:last], left] if any(each.isalnum() or each in _QUOTES for each in left) else lines[:last]


def _rounds(line: str, said: int) -> tuple[int, int]:
    """The length of the shortest unit that `line` repeats up to its end, and where its first round starts.

    The length is 0 where there is none. The last round may be cut off. A round begins wherever the repeating does,
    perhaps inside a word, and perhaps before `said`; enough of them must stand behind it.
    """
    for size in range(1, min(_LONGEST_UNIT, len(line) // _REPEATS) + 1):
        if line[-size:] != line[-2 * size : -size]:
            continue
        start = len(line) - size
        while start > 0 and line[start - 1] == line[start - 1 + size]:
            start -= 1
        unit = line[start : start + size]
        needed = max(_LEAST_CHARS, size * (_ROW_REPEATS if _is_row(unit) else _REPEATS))
        if len(line) - max(start, said) >= needed and any(_is_telling(each) for each in unit):
            return size, start
    return 0, 0


def _ends_of_round(line: str, said: int, start: int, size: int) -> list[int]:
    """Where to cut `line`, best first: where a statement, an item or a word ends in the first round, last ones first.

    None behind `said` where the first round ends in front of it.
    """
    end = start + size
    if end <= said:
        return [said]
    # The round may have begun with the separator in front of the cursor; then it ends at the next one.
    items = [at for at in range(max(start, said + 1), end + size) if line[at : at + 2] in ("; ", ", ")]
    ends = [at for at in items if at < end][::-1] + [at for at in items if at >= end][:1]
    for at in range(end, max(start, said), -1):
        if not (_is_of_word(line[at - 1]) and _is_of_word(line[at])):
            ends.append(len(_without_joint(line[:at])))
    # Where a word repeats without anything between, it ends nowhere but where the round does.
    return [*ends, len(_without_joint(line[:end]))]


def _without_joint(text: str) -> str:
    text = text.rstrip(_JOINTS)
    front, _, word = text.rpartition(" ")
    return _without_joint(front) if word in _JOINING_WORDS else text


def _is_of_word(each: str) -> bool:
    return each.isalnum() or each == "_"


def _is_telling(each: str) -> bool:
    """Whether a character says something: letters, digits and pictures do; blanks, dashes and lines of boxes don't."""
    return each.isalnum() or (unicodedata.category(each) == "So" and not "\u2500" <= each <= "\u25ff")


def _is_row(unit: str) -> bool:
    """Whether a unit may be part of a row of data: figures, or items of one word each."""
    if not any(_is_telling(each) and not each.isdigit() for each in unit):
        return True
    return (
        "," in unit
        and not any(each in unit for each in ";=")
        and all(len(item.split()) < 2 for item in unit.split(","))
    )


def _stands_twice(unit: str, place: Surroundings) -> bool:
    """Whether the text around repeats `unit`, wherever in it one begins to read."""
    around = f"{place.before[-_READ_CHARS:]}\n{place.after[:_READ_CHARS]}"
    return any((unit[at:] + unit[:at]) * 2 in around for at in range(len(unit)))
