"""The joint between the engine's text and the rest of the cursor's line: what stands there is not said twice.

Overlap is judged by balance, not by length: a bracket, quote or tag that the text closes and the document closes
too is kept once, and text that goes on behind it takes its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server import lexing
from lsp_server.ghost_text.surroundings import Surroundings
from lsp_server.languages import Language

_CLOSING_TAG = re.compile(r"</[\w.:-]*>")
_CLOSERS_ONLY = re.compile(r"[\s)\]}\"'`]*[)\]}\"'`][;,]?$")


@dataclass(frozen=True, slots=True)
class Joint:
    """`text` goes in at the cursor and replaces the first `consumed` characters of the line's rest."""

    text: str
    consumed: int


@dataclass(frozen=True, slots=True)
class _Seam:
    """The line's rest as far as it still stands: `open` is what is open in front of it, down to `floor` closed below.

    `floor` counts the openers that the text behind the cursor closes; those above it are the engine's to close.
    """

    rest: str
    open: lexing.Stack
    floor: int
    language: Language


def join_tail(text: str, place: Surroundings) -> Joint | None:
    """`text` joined to the line's rest, or None if nothing is left or something would be left open in its middle."""
    stack = lexing.without_line_comment(place.stack, place.language)
    in_comment = place.stack[len(stack) :]
    seam = _Seam(place.tail, stack, len(stack) - _missing(stack, place), place.language)
    joint = Joint(_without_overlap(text, seam), 0) if in_comment else _joined(text, seam)
    rest = place.tail[joint.consumed :]
    joined = Joint(_trimmed(joint.text, rest), joint.consumed)
    if not joined.text.strip() or _leaves_open(joined.text, rest, place):
        return None
    return joined


def _trimmed(text: str, rest: str) -> str:
    """No blanks at the line's end, no line end before its rest, and no second blank in front of one."""
    if not rest.strip():
        return text.rstrip()
    return text.rstrip() if rest[0].isspace() else text.rstrip("\n")


def _joined(text: str, seam: _Seam) -> Joint:
    """`text` without what the rest says too, and closing no more than the document lacks.

    What it closes beyond that is cut with all that follows, unless the rest starts with that closer and the text
    has more to say behind it: then the closer is taken over, and the question is asked again behind it.
    """
    text = _without_overlap(text, seam)
    excess = _first_excess(text, seam)
    if excess is None:
        return Joint(text, 0)
    cut = Joint(text[: excess.start], 0)
    opener = seam.open[_common(seam.open, excess.after)]
    blanks = len(seam.rest) - len(seam.rest.lstrip())
    closer = lexing.closer_of(opener, seam.language)
    if not closer or not seam.rest.startswith(closer, blanks):
        return cut
    beyond = _Seam(seam.rest[blanks + len(closer) :], excess.after, min(seam.floor, len(excess.after)), seam.language)
    more = _joined(text[excess.end :], beyond)
    if _says_nothing(more.text, beyond):
        return cut
    return Joint(text[: excess.end] + more.text, blanks + len(closer) + more.consumed)


def _says_nothing(text: str, beyond: _Seam) -> bool:
    """True for text that is blank, starts what the rest says, or comments in front of a rest."""
    said, rest = "".join(text.split()), "".join(beyond.rest.split())
    is_comment = lexing.is_line_comment(lexing.stack_after(text, beyond.language, beyond.open), beyond.language)
    return rest.startswith(said) or (bool(rest) and is_comment)


def _first_excess(text: str, seam: _Seam) -> lexing.Event | None:
    """The first closer of what the document closes itself and `text` does not open again."""
    events = list(lexing.scan(text, seam.language, seam.open))
    levels = [_common(seam.open, event.after) for event in events]
    if not levels or levels[-1] >= seam.floor:
        return None
    return events[max((number for number, level in enumerate(levels) if level >= seam.floor), default=-1) + 1]


def _without_overlap(text: str, seam: _Seam) -> str:
    """`text` without a copy of the line's rest at its end."""
    rest, said = seam.rest.strip(), text.rstrip()
    if not rest:
        return text
    if said.endswith(rest) and (len(rest) > 1 or not rest.isalnum()):
        shorter = said[: len(said) - len(rest)]
        gained = _faults(said, seam) - _faults(shorter, seam)
        # A copy of nothing but closers is one only if they are too many.
        if gained > 0 or (gained == 0 and not _CLOSERS_ONLY.match(rest)):
            return shorter
    tags = said[_closing_tags_start(said) :]
    if tags and rest.startswith(tags):
        return said[: len(said) - len(tags)]
    return text[: len(text) - _glued(text, seam.rest)]


def _closing_tags_start(text: str) -> int:
    """Where the closing tags begin that `text` ends with, one behind the other; its end if there are none."""
    start = len(text)
    while (tag := text.rfind("</", 0, start)) >= 0 and _CLOSING_TAG.fullmatch(text, tag, start):
        start = tag
    return start


def _faults(text: str, seam: _Seam) -> int:
    """What is wrong with the line once `text` stands in front of the rest: strays, and brackets left over or lost."""
    stack, strays = seam.open, 0
    for event in lexing.scan(text + seam.rest, seam.language, seam.open):
        stack = event.after
        strays += event.before == event.after
    level = len(lexing.without_line_comment(stack, seam.language))
    most = len(lexing.without_line_comment(lexing.stack_after(seam.rest, seam.language, seam.open), seam.language))
    least = most - (len(seam.open) - seam.floor)
    return strays + max(0, level - most, least - level)


def _glued(text: str, tail: str) -> int:
    """How much of a word is there twice, when the text's last word runs into the line's rest."""
    if not (_is_word(text[-1:]) and _is_word(tail[:1])):
        return 0
    sizes = range(min(len(text), len(tail)), 0, -1)
    return next((size for size in sizes if text.endswith(tail[:size]) and (size > 1 or len(text) > 1)), 0)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _common(left: lexing.Stack, right: lexing.Stack) -> int:
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return same


def _missing(stack: lexing.Stack, place: Surroundings) -> int:
    """How many of the innermost openers no text behind the cursor closes."""
    if not stack:
        return 0
    closed = _closed_below(stack, place)
    strays = _strays(stack, closed)
    missing = 0
    while missing < len(stack) and _strays(stack[: len(stack) - missing - 1], closed) <= strays:
        missing += 1
    return missing


def _closed_below(stack: lexing.Stack, place: Surroundings) -> list[str]:
    """The openers of what the text behind the cursor closes without having opened it, in order."""
    closed, level = [], len(stack)
    for event in lexing.scan(place.after, place.language, place.stack):
        if not level:
            break
        mark = place.after[event.start : event.end]
        if event.before == event.after and len(event.before) <= level:
            closed.append(lexing.OPENER_OF[mark])
        elif len(event.after) < level and mark != "\n":
            closed.append(stack[len(event.after)])
        level = min(level, len(event.after))
    return closed


def _strays(stack: lexing.Stack, closed: list[str]) -> int:
    """How many of `closed` find no opener on `stack`."""
    strays, level = 0, len(stack)
    for opener in closed:
        place = next((depth for depth in range(level - 1, -1, -1) if stack[depth] == opener), -1)
        if place < 0:
            strays += 1
        else:
            level = place
    return strays


def _leaves_open(text: str, rest: str, place: Surroundings) -> bool:
    """True when `rest` would stand inside a bracket or string that `text` opens and `rest` does not close."""
    if not rest.strip():
        return False
    inside = lexing.stack_after(text, place.language, place.stack)
    with_text = lexing.stack_after(rest, place.language, inside)
    return len(with_text) > len(lexing.stack_after(rest, place.language, place.stack))
