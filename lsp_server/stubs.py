"""Function bodies that are still to be written: which there are, and where their text would go.

Pure. The one place that decides what "Complete body" is about: it is offered where `is_unfinished`, and fills what
`find_stubs` finds; where that finds nothing, the selection is rewritten by an instruction.
"""

from __future__ import annotations

import re

from lsp_server.document import for_model
from lsp_server.holes import Hole
from lsp_server.languages import language_of
from lsp_server.python_definitions import Definition, definitions, line_start, masked, next_in_body, read_from

# What stands behind a stub tells whether it is the whole body.
_LOOKED_BEHIND_CHARS = 2_000
_STUB = re.compile(r"(?:pass|\.\.\.|raise[ \t]+NotImplementedError(?:\([^\n]*\))?)(?=[ \t]*(?:\n|\Z))")
_UNFINISHED = re.compile(
    r"^[ \t]*(?:pass|\.\.\.)[ \t]*(?:#.*)?$|\bTODO\b|NotImplemented|\b(?:todo|unimplemented)!\(|\{\s*\}|[:{]\s*\Z",
    re.MULTILINE,
)
# A stub alone is judged by where it stands; what says more than that cannot be a gap.
_UNFINISHED_PYTHON = re.compile(
    r"^[ \t]*(?:(?:async[ \t]+)?def\b.*:[ \t]*)?(?:pass|\.\.\.)[ \t]*#|\bTODO\b|raise[ \t]+NotImplementedError|:\s*\Z",
    re.MULTILINE,
)


def is_unfinished(text: str, start: int, end: int, language: str) -> bool:
    """Whether a body is to be written within `[start, end)`."""
    if find_stubs(text, start, end, language):
        return True
    pattern = _UNFINISHED_PYTHON if _is_python(language) else _UNFINISHED
    return pattern.search(for_model(text[start:end])) is not None


def find_stubs(text: str, start: int, end: int, language: str) -> list[Hole]:
    """The Python function bodies within `[start, end)` that are a stub and nothing else, in order and apart.

    Stubs are `pass`, `...` and `raise NotImplementedError`, perhaps behind a docstring. A docstring alone is a body
    too: its hole is empty, on a new line behind it. Only the selection and a bounded stretch around it are read.
    """
    if not _is_python(language):
        return []
    first = read_from(text, start)
    code = masked(text[first : end + _LOOKED_BEHIND_CHARS])
    found = (_hole_in(code, definition) for definition in definitions(code) if definition.is_function)
    holes = [Hole(first + hole.start, first + hole.end, hole.lead) for hole in found if hole is not None]
    return [hole for hole in holes if start <= hole.start - bool(hole.lead) and hole.end <= end]


def _is_python(language: str) -> bool:
    return language_of(language).grammar == "python"


def _hole_in(code: str, definition: Definition) -> Hole | None:
    if definition.body is None:
        return _behind_docstring(code, definition)
    stub = _STUB.match(code, definition.body)
    if stub is None or next_in_body(code, stub.end(), definition) is not None:
        return None
    return Hole(*stub.span())


def _behind_docstring(code: str, definition: Definition) -> Hole | None:
    """The line a body would begin on. One with its docstring on the line of its head has no such line."""
    if definition.docstring is None:
        return None
    start, end = definition.docstring
    blanks = code[line_start(code, start) : start]
    if blanks.strip():
        return None
    # Comments in the body stand in front of what they announce.
    comments = re.compile(rf"[ \t]*#*(?:\n+{blanks}#+)*").match(code, end)
    place = len(code[: comments.end()].rstrip(" \t")) if comments else end
    return Hole(place, place, f"\n{blanks}")
