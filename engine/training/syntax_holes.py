"""Where functions, bodies and expressions lie in a source text: `syntax_of`.

Owns the use of tree-sitter in training: a grammar is asked where its wheel is installed, indentation answers
otherwise. Pure but for loading grammars on first use. Must not choose anything: see `holes`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from tree_sitter import Language, Node, Parser, Query, QueryCursor, QueryError

from engine.grammars import GRAMMARS

_LANGUAGES = frozenset(
    [
        "python",
        "javascript",
        "typescript",
        "go",
        "rust",
        "java",
        "c",
        "cpp",
        "csharp",
        "kotlin",
        "ruby",
        "php",
        "lua",
        "shell",
    ]
)
"""Those with holes of their own syntax; of others the lines tell."""

# Node names of all grammars together; a name a grammar does not have is left out of its query.
_FUNCTIONS = (
    "function_definition",
    "function_declaration",
    "generator_function_declaration",
    "function_item",
    "method_definition",
    "method_declaration",
    "constructor_declaration",
    "method",
    "singleton_method",
    "local_function_statement",
)
_BODIES = (
    "block",
    "statement_block",
    "compound_statement",
    "body_statement",
    "function_body",
    "constructor_body",
    "declaration_list",
    "class_body",
    "field_declaration_list",
    "do_block",
    "switch_block",
    "control_structure_body",
)
_BRACKETS = (
    "argument_list",
    "arguments",
    "parameters",
    "formal_parameters",
    "parameter_list",
    "value_arguments",
    "function_value_parameters",
    "list",
    "dictionary",
    "array",
    "object",
    "tuple",
    "method_parameters",
    "array_creation_expression",
    "table_constructor",
)
_VALUES = ("right", "value", "condition", "alternative", "index", "subscript")

_MOST_BLOCK_LINES = 25
_MOST_EXPRESSION = 300
_MOST_PLACES = 4000
_HEADER = re.compile(r"^[ \t]*\S.*(?:[{:(]|\b(?:do|then))[ \t]*$", re.MULTILINE)
_INNER_BRACKETS = re.compile(r"\(([^()\n]{2,200})\)")


class Span(NamedTuple):
    """Characters `start` to `stop` of a text."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `start` is where its first line begins, `body` where its first statement does (behind the
    docstring), `stop` where it ends."""

    start: int
    body: int
    stop: int


@dataclass(frozen=True, slots=True)
class Syntax:
    """The places of one text, each in the order of the text."""

    functions: tuple[Function, ...]
    blocks: tuple[Span, ...]
    """Bodies of at most 25 lines, without braces and the white space around them."""
    expressions: tuple[Span, ...]
    """The inside of brackets, single arguments, assigned values and conditions."""


def syntax_of(text: str, language: str) -> Syntax:
    """The places of `text`; by indentation and brackets for a language without an installed grammar."""
    grammar = _grammar(language)
    if grammar is None:
        return _syntax_by_layout(text)
    parser, query = grammar
    found = QueryCursor(query, match_limit=_MOST_PLACES).captures(parser.parse(text.encode()).root_node)
    at = _character_offsets(text)
    functions = (_function(node, text, at) for node in found.get("function", []))
    blocks = (_inside(text, *_edges(node, at)) for node in found.get("body", []))
    return Syntax(
        tuple(sorted((function for function in functions if function), key=lambda function: function.start)),
        tuple(sorted({span for span in blocks if _is_block(text, span)})),
        tuple(
            sorted({span for span in _expressions(found, text, at) if 1 < span.stop - span.start < _MOST_EXPRESSION})
        ),
    )


def has_grammar(language: str) -> bool:
    """Whether trees, not layout, answer for this language here."""
    return _grammar(language) is not None


@cache
def _grammar(language: str) -> tuple[Parser, Query] | None:
    if language not in _LANGUAGES:
        return None
    module, entry = GRAMMARS["shellscript" if language == "shell" else language]
    try:
        loaded = Language(getattr(importlib.import_module(module), entry)())
    except ImportError:
        return None
    return Parser(loaded), Query(loaded, "\n".join(_patterns(loaded)))


def _patterns(language: Language) -> Iterator[str]:
    """The patterns this grammar has names for."""
    wanted = [
        *(f"({name}) @function" for name in _FUNCTIONS),
        *(f"({name}) @body" for name in _BODIES),
        *(f"({name}) @brackets" for name in _BRACKETS),
        *(f"(_ {field}: (_) @value)" for field in _VALUES),
    ]
    for pattern in wanted:
        try:
            Query(language, pattern)
        except QueryError:
            continue
        yield pattern


def _character_offsets(text: str) -> Sequence[int]:
    """The character at every byte of the UTF-8 text, one more for its end."""
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    begun = np.cumsum((data & 0xC0) != 0x80)  # a byte that continues a character begins with the bits 10
    return [*(begun - 1).tolist(), len(text)]


def _edges(node: Node, at: Sequence[int]) -> tuple[int, int]:
    return at[node.start_byte], at[node.end_byte]


def _inside(text: str, start: int, stop: int) -> Span:
    """The span without the brackets and the white space at its ends."""
    if stop - start >= 2 and text[start] + text[stop - 1] in ("{}", "()", "[]"):
        start, stop = start + 1, stop - 1
    part = text[start:stop]
    return Span(start + len(part) - len(part.lstrip()), max(start, stop - len(part) + len(part.rstrip())))


def _is_block(text: str, span: Span) -> bool:
    return span.start < span.stop and text.count("\n", *span) < _MOST_BLOCK_LINES


def _function(node: Node, text: str, at: Sequence[int]) -> Function | None:
    body = node.child_by_field_name("body") or (node.named_children[-1] if node.named_children else None)
    if body is None:
        return None
    start, stop = _edges(node, at)
    inner = _inside(text, *_edges(body, at))
    first = body.named_children[0] if body.named_children else None
    if first is not None and first.type == "expression_statement" and first.named_children[:1]:
        literal = first.named_children[0]
        if literal.type == "string" and len(body.named_children) > 1:
            inner = Span(at[body.named_children[1].start_byte], inner.stop)
    line = text.rfind("\n", 0, start) + 1
    return Function(start if text[line:start].strip() else line, inner.start, stop) if inner.start < stop else None


def _expressions(found: dict[str, list[Node]], text: str, at: Sequence[int]) -> Iterator[Span]:
    for node in found.get("brackets", []):
        yield _inside(text, *_edges(node, at))
        yield from (Span(*_edges(child, at)) for child in node.named_children)
    yield from (Span(*_edges(node, at)) for node in found.get("value", []))


def _syntax_by_layout(text: str) -> Syntax:
    """Bodies are the deeper lines behind a line that opens something; arguments stand between round brackets."""
    blocks = tuple(span for header in _HEADER.finditer(text) if (span := _deeper(text, header)))
    expressions = tuple(Span(*match.span(1)) for match in _INNER_BRACKETS.finditer(text))
    return Syntax((), tuple(span for span in blocks if _is_block(text, span)), expressions)


def _deeper(text: str, header: re.Match[str]) -> Span | None:
    """The lines behind `header` that are indented more than it."""
    depth = _indent(header.group())
    start = stop = header.end() + 1
    for line in text[start:].splitlines(keepends=True)[: _MOST_BLOCK_LINES + 1]:
        if line.strip() and _indent(line) <= depth:
            break
        stop += len(line)
    span = _inside(text, start, stop)
    return span if span.start < span.stop else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
