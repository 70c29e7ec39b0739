"""Where a Python text is none, by the standard library's parser: tree-sitter's takes `result = ` and odd indentation.

The Python that runs the engine decides what is syntax. Pure.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from engine.grammars import Span


def python_error(text: str) -> Span | None:
    """The line at which Python stops reading, in characters `[start, end)`, at least one; None for a sound text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as fault:
        return _line(text, fault.lineno or 1)
    except ValueError:
        at = max(text.find("\0"), 0)
        return at, at + 1
    except (RecursionError, MemoryError):
        return 0, max(len(text), 1)
    return None


def bodies_between(before: str, after: str) -> tuple[str, str]:
    """Statements that may stand at a line's beginning: as deep as the line behind, and deeper than the one in front."""
    behind, in_front = after.split("\n")[1:], before.split("\n")[::-1]
    return f"{_indentation(behind)}pass", f"{_indentation(in_front)} pass"


def _indentation(lines: Sequence[str]) -> str:
    """That of the first line which says anything."""
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def _line(text: str, number: int) -> Span:
    """Line `number` from 1, or what is nearest to it in the text."""
    lines = text.split("\n")
    index = min(max(number, 1), len(lines)) - 1
    start = min(sum(len(line) + 1 for line in lines[:index]), max(len(text) - 1, 0))
    return start, start + max(len(lines[index]), 1)
