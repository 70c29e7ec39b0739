"""The part of a document an engine gets to see around a gap.

Owns the borders of that window. They move in steps, not with every key, so that the engine finds the same prefix
it has already encoded. Must not know tokens: the budget is in code points. Text comes out normalised to `\\n`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.document import for_model

_STEPS_PER_WINDOW = 4


@dataclass(frozen=True, slots=True)
class Window:
    """The known text on both sides of the gap, as the engine may see it."""

    prefix: str
    suffix: str


def window(document_text: str, start: int, end: int, *, prefix_chars: int, suffix_chars: int) -> Window:
    """At most `prefix_chars` code points before `start` and `suffix_chars` behind `end`, cut between lines.

    A line longer than a step is cut inside. The left border is a multiple of a quarter of the budget from the
    document's start, the right one from its end: typing in the gap leaves both where they are until it has
    produced a step's worth of text.
    """
    left = _left_border(document_text, start, prefix_chars)
    right = _right_border(document_text, end, suffix_chars)
    return Window(for_model(document_text[left:start]), for_model(document_text[end:right]))


def _step(budget: int) -> int:
    return max(1, budget // _STEPS_PER_WINDOW)


def _left_border(text: str, start: int, budget: int) -> int:
    if start <= budget:
        return 0
    step = _step(budget)
    border = min(start, -(-(start - budget) // step) * step)
    line_end = _line_end_behind(text, border - 1, min(start, border + step))
    return _outside_line_end(text, border) if line_end < 0 else line_end


def _right_border(text: str, end: int, budget: int) -> int:
    hidden = len(text) - end - budget
    if hidden <= 0:
        return len(text)
    step = _step(budget)
    border = max(end, len(text) - -(-hidden // step) * step)
    feed = max(text.rfind(mark, max(end, border - step), border) for mark in ("\n", "\r"))
    right = border if feed < 0 else feed + 1
    return right - 1 if right > end and _outside_line_end(text, right) != right else right


def _line_end_behind(text: str, start: int, stop: int) -> int:
    """Where the first line that starts in `(start, stop]` starts, or -1."""
    found = [place for place in (text.find("\n", start, stop), text.find("\r", start, stop)) if place >= 0]
    return _outside_line_end(text, min(found) + 1) if found else -1


def _outside_line_end(text: str, border: int) -> int:
    """`border`, or one further when it would part a `\\r\\n`."""
    return border + 1 if text[border - 1 : border + 1] == "\r\n" else border
