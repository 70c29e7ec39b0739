"""The part of a text an engine gets to see around a gap.

Owns the borders of that window. They move in steps, not with every key, so that the engine finds the same prefix it
has already encoded. Budgets are code points and estimated tokens. Text comes out normalised to `\\n`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from lsp_server.document import for_model
from lsp_server.tokens import estimated_tokens

# What the engine reads before a gap (`engine/prompts.py`, held equal by a test): of more text only the end counts.
PREFIX_TOKENS = 512

_STEPS_PER_WINDOW = 4
# About 64 tokens, as the engine's own cut.
_TOKEN_STEP_CHARS = 256


@dataclass(frozen=True, slots=True)
class Window:
    """The known text on both sides of the gap, as the engine may see it."""

    prefix: str
    suffix: str

    @property
    def is_blank(self) -> bool:
        """Whether nothing is known, not even the language: an engine would make something up."""
        return not (self.prefix.strip() or self.suffix.strip())


def window(document_text: str, start: int, end: int, *, prefix_chars: int, suffix_chars: int) -> Window:
    """At most `prefix_chars` code points before `start` and `suffix_chars` behind `end`, cut between lines.

    A line longer than a step is cut inside. The left border is a multiple of a quarter of the budget from the
    document's start, the right one from its end: typing in the gap leaves both where they are until it has
    produced a step's worth of text.
    """
    left = left_border(document_text, start, prefix_chars)
    right = right_border(document_text, end, suffix_chars)
    return Window(for_model(document_text[left:start]), for_model(document_text[end:right]))


def left_border(text: str, start: int, chars: int) -> int:
    """Where the window begins: a line's start at most `chars` before `start`, the same while the gap grows a little."""
    if start <= chars:
        return 0
    step = _step(chars)
    return _border_at(text, start, -(-(start - chars) // step) * step, step)


def tighter_border(text: str, left: int, start: int, tokens: int) -> int:
    """`left`, or the first later border behind which at most `tokens` tokens are left before `start`.

    Borders are a step of their own apart, counted from the text's start, so they rest as `left` does.
    """
    best = start
    steps = range(start // _TOKEN_STEP_CHARS, left // _TOKEN_STEP_CHARS, -1)
    inner = (_border_at(text, start, number * _TOKEN_STEP_CHARS, _TOKEN_STEP_CHARS) for number in steps)
    for border in chain(inner, (left,)):
        tokens -= estimated_tokens(text[border:best])
        if tokens < 0:
            break
        best = border
    return best


def right_border(text: str, end: int, budget: int) -> int:
    """Where the window ends: behind a line's end at most `budget` behind `end`, counted from the text's end."""
    hidden = len(text) - end - budget
    if hidden <= 0:
        return len(text)
    step = _step(budget)
    border = max(end, len(text) - -(-hidden // step) * step)
    feed = max(text.rfind(mark, max(end, border - step), border) for mark in ("\n", "\r"))
    right = border if feed < 0 else feed + 1
    return right - 1 if right > end and _outside_line_end(text, right) != right else right


def _step(budget: int) -> int:
    return max(1, budget // _STEPS_PER_WINDOW)


def _border_at(text: str, start: int, border: int, step: int) -> int:
    """The first line's start behind `border` within a step, else `border` itself; never behind `start`."""
    border = min(start, border)
    line_end = _line_end_behind(text, border - 1, min(start, border + step))
    return min(start, _outside_line_end(text, border) if line_end < 0 else line_end)


def _line_end_behind(text: str, start: int, stop: int) -> int:
    """Where the first line that starts in `(start, stop]` starts, or -1."""
    found = [place for place in (text.find("\n", start, stop), text.find("\r", start, stop)) if place >= 0]
    return _outside_line_end(text, min(found) + 1) if found else -1


def _outside_line_end(text: str, border: int) -> int:
    """`border`, or one further when it would part a `\\r\\n`."""
    return border + 1 if text[border - 1 : border + 1] == "\r\n" else border
