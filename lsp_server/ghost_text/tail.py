"""The joint between the engine's text and the rest of the cursor's line: what stands there is not said twice.

Overlap is judged by balance, not by length: a bracket, quote or tag that the text closes and the document closes
too is kept once, and text that goes on behind it takes its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server import lexing
from lsp_server.ghost_text.surroundings import Surroundings

_CLOSING_TAGS = re.compile(r"(?:</[\w.:-]*>)+$")


@dataclass(frozen=True, slots=True)
class Joint:
    """`text` goes in at the cursor and replaces the first `consumed` characters of the line's rest."""

    text: str
    consumed: int


def join_tail(text: str, place: Surroundings) -> Joint | None:
    """`text` joined to the line's rest, or None when nothing is left or something would be left open in its middle."""
    joint = _balanced(_without_overlap(text, place.tail, place), place)
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


def _without_overlap(text: str, tail: str, place: Surroundings) -> str:
    """`text` without a copy of the line's rest at its end."""
    rest, said = tail.strip(), text.rstrip()
    if not rest:
        return text
    if said.endswith(rest) and (len(rest) > 1 or not rest.isalnum()):
        shorter = said[: len(said) - len(rest)]
        if _distance(shorter, place) <= _distance(said, place):
            return shorter
    tags = _CLOSING_TAGS.search(said)
    if tags and rest.startswith(tags.group()):
        return said[: tags.start()]
    return text[: len(text) - _glued(text, tail)]


def _glued(text: str, tail: str) -> int:
    """How much of a word is there twice, when the text's last word runs into the line's rest."""
    if not (_is_word(text[-1:]) and _is_word(tail[:1])):
        return 0
    sizes = range(min(len(text), len(tail)), 0, -1)
    return next((size for size in sizes if text.endswith(tail[:size]) and (size > 1 or len(text) > 1)), 0)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _distance(text: str, place: Surroundings) -> int:
    """How many brackets and strings `text` closes of the document's or leaves open itself."""
    after = lexing.stack_after(text, place.language, place.stack)
    common = _common(place.stack, after)
    return len(place.stack) + len(after) - 2 * common


def _common(left: lexing.Stack, right: lexing.Stack) -> int:
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return same


def _balanced(text: str, place: Surroundings) -> Joint:
    """`text` closing no more than the document lacks.

    What it closes beyond that is cut, together with what follows; where the line's rest starts with those closers
    and the text has more to say behind them, it takes their place instead.
    """
    stack = lexing.without_line_comment(place.stack, place.language)
    floor = len(stack) - _missing(stack, place)
    events = list(lexing.scan(text, place.language, place.stack))
    levels = [min(_common(stack, event.after), floor) for event in events]
    if not levels or levels[-1] == floor:
        return Joint(text, 0)
    last_whole = max((number for number, level in enumerate(levels) if level == floor), default=-1)
    cut = events[last_whole + 1].start
    consumed = _closers_length(stack[levels[-1] : floor], place)
    said = "".join(text[cut:].split())
    if consumed and not "".join(place.tail.split()).startswith(said):
        return _replacing(text, consumed, place) or Joint(text[:cut], 0)
    return Joint(text[:cut], 0)


def _replacing(text: str, consumed: int, place: Surroundings) -> Joint | None:
    """`text` in the place of the closers it repeats, unless it would push a comment in front of the rest."""
    rest = place.tail[consumed:]
    shorter = _without_overlap(text, rest, place) if rest.strip() else text
    is_comment = lexing.is_line_comment(lexing.stack_after(shorter, place.language, place.stack), place.language)
    return None if rest.strip() and is_comment else Joint(shorter, consumed)


def _closers_length(openers: lexing.Stack, place: Surroundings) -> int:
    """How far into the line's rest the closers of `openers` reach, 0 if they do not all stand there."""
    reached = 0
    for opener in reversed(openers):
        rest = place.tail[reached:]
        closer = lexing.closer_of(opener, place.language)
        if not closer or not rest.lstrip().startswith(closer):
            return 0
        reached += len(rest) - len(rest.lstrip()) + len(closer)
    return reached


def _missing(stack: lexing.Stack, place: Surroundings) -> int:
    """How many of the innermost openers no text behind the cursor closes."""
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
