"""What a source text imports and defines, and which definitions are open around a place.

A grammar is asked where there is one and the text is of a size to parse at a key press; lines are read otherwise.
Pure. Must not decide what is shown to an engine: see `neighbours`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.grammars import Grammar, grammar_of, nodes_of, parser_of
from lsp_server.languages import Language, language_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

# About 7 characters are parsed in a microsecond and as many searched; this much is 20 ms.
PARSED_CHARS = 60_000
# Without a tree, no more than this before a place is read.
READ_CHARS = 100_000
_LONGEST_HEADER_LINES = 6

_IMPORT_LINE = re.compile(
    r"^[ \t]*(?:import\b|from\s+\S+\s+import\b|#[ \t]*include\b|using\s+[\w.:]+\s*;|use\s+[\w\\:]|package\s+[\w.]"
    r"|require\b|require_relative\b|source\s|open\s+[A-Z]|library\(|@import\b|(?:local|const)\s+\w+\s*=\s*require\b).*",
    re.MULTILINE,
)
_INDENTED = re.compile(r"^(?P<indent>[ \t]*)\S", re.MULTILINE)
_DEFINITION_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:pub(?:lic)?|private|protected|internal|static|export|default|abstract|final|async"
    r"|override|open|local|unsafe|inline|virtual|partial|sealed)(?:\([^)\n]*\))?[ \t]+)*"
    r"(?:def|class|fn|func|fun|function|sub|struct|enum|interface|trait|impl|module|namespace|record|object|protocol"
    r"|extension|type|defmodule|defp|data|instance)\b[ \t]*(?P<name>(?:\w+(?:(?:::|\.)\w+)*[?!]?)?)[^\n]*",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A named piece of code in `[start, end)`. `header` is its text up to its body, without blanks at its ends."""

    name: str
    start: int
    end: int
    header: str


@dataclass(frozen=True, slots=True)
class Outline:
    """Imports as (where, text) and definitions, in the order of the text; what is open around a place, outermost first.

    `around` holds scopes without a name too: a closure, a CSS rule, a JSON pair.
    """

    imports: tuple[tuple[int, str], ...] = ()
    definitions: tuple[Definition, ...] = ()
    around: tuple[Definition, ...] = ()


def outline(text: str, offset: int, language: str) -> Outline:
    """What `text` imports and defines, and what begins before `offset` and ends behind it.

    Where only lines are read, a definition ends where the next begins.
    """
    parsed = _Parsed.of(text, language_of(language))
    if parsed is None:
        return _outline_by_lines(text, offset)
    imports, definitions = parsed.told()
    return Outline(
        tuple((parsed.place(node.start_byte), parsed.text_of(node)) for node in imports),
        tuple(parsed.definition(node) for node in definitions),
        tuple(parsed.definition(node) for node in parsed.around(offset)),
    )


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A tree with the bytes it was read from, and what its grammar calls things."""

    tree: Tree
    source: bytes
    is_ascii: bool
    name: str
    facts: Grammar

    @classmethod
    def of(cls, text: str, language: Language) -> _Parsed | None:
        parser, facts = parser_of(language.grammar), grammar_of(language.grammar)
        if parser is None or facts is None or len(text) > PARSED_CHARS:
            return None
        source = text.encode("utf-8", "replace")
        return cls(parser.parse(source), source, len(source) == len(text), language.grammar, facts)

    def place(self, byte: int) -> int:
        """The code point at a byte."""
        return byte if self.is_ascii else len(self.source[:byte].decode("utf-8", "replace"))

    def text_of(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()

    def told(self) -> tuple[list[Node], list[Node]]:
        """The imports and the definitions, from one search."""
        found = nodes_of(self.name, self.tree.root_node, self.facts.imports | self.facts.definitions)
        imports = [node for node in found if node.type in self.facts.imports]
        return imports, [node for node in found if node.type in self.facts.definitions]

    def around(self, offset: int) -> list[Node]:
        """The definitions and scopes around an offset, outermost first."""
        byte = offset if self.is_ascii else len(self.source.decode("utf-8")[:offset].encode("utf-8"))
        node = self.tree.root_node.descendant_for_byte_range(max(byte - 1, 0), byte)
        found = []
        while node is not None:
            if node.type in self.facts.definitions | self.facts.scopes and node.start_byte < byte < node.end_byte:
                found.append(node)
            node = node.parent
        return found[::-1]

    def definition(self, node: Node) -> Definition:
        name = _name_node(node)
        return Definition(
            self.text_of(name) if name is not None else "",
            self.place(node.start_byte),
            self.place(node.end_byte),
            self._header(node),
        )

    def _header(self, node: Node) -> str:
        """From the start of the line to the body, an opening brace included; at most a few lines."""
        start = self.source.rfind(b"\n", 0, node.start_byte) + 1
        if self.source[start : node.start_byte].strip() and node.type not in self.facts.scopes:
            start = node.start_byte
        body = node.child_by_field_name("body")
        end = self._end_of_head(body) if body is not None else node.end_byte
        text = self.source[start:end].decode("utf-8", "replace").rstrip().strip("\n")
        lines = text.split("\n")
        return "\n".join(lines[:_LONGEST_HEADER_LINES] if body is not None else lines[:1])

    def _end_of_head(self, body: Node) -> int:
        """Behind the brace that opens a body; else behind what stands before it and is no comment."""
        if self.source[body.start_byte : body.start_byte + 1] == b"{":
            return body.start_byte + 1
        before = body.prev_sibling
        while before is not None and before.type in self.facts.comments:
            before = before.prev_sibling
        return before.end_byte if before is not None else body.start_byte


def _name_node(node: Node) -> Node | None:
    """What a definition is called by; in C it hangs below declarators."""
    name = node.child_by_field_name("name") or node.child_by_field_name("type")
    below: Node | None = node.child_by_field_name("declarator")
    while below is not None:
        name, below = below, below.child_by_field_name("declarator")
    if name is None and node.named_children:
        # Go's `type` wraps what has the name.
        name = node.named_children[0].child_by_field_name("name")
    return name


def _outline_by_lines(text: str, offset: int) -> Outline:
    imports = tuple((found.start(), found.group().strip()) for found in _IMPORT_LINE.finditer(text))
    heads = list(_DEFINITION_LINE.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    definitions = tuple(_defined(head, end) for head, end in zip(heads, ends, strict=True))
    return Outline(imports, definitions, tuple(_around_by_lines(text, offset)))


def _defined(head: re.Match[str], end: int) -> Definition:
    return Definition(head["name"], head.start(), end, head.group().rstrip())


def _around_by_lines(text: str, offset: int) -> list[Definition]:
    """Lines that look like definitions, each less indented than what it stands above."""
    line_start = text.rfind("\n", 0, offset) + 1
    here = _INDENTED.search(text, line_start)
    margin = len(here["indent"]) if here is not None else 0
    found: list[Definition] = []
    for start, line in _lines_before(text, max(0, offset - READ_CHARS), line_start):
        indent = len(line) - len(line.lstrip(" \t"))
        if not margin or indent >= margin or not line.strip():
            continue
        head = _DEFINITION_LINE.match(line)
        if head is not None:
            found.append(Definition(head["name"], start, len(text), head.group().rstrip()))
        margin = indent
    return found[::-1]


def _lines_before(text: str, first: int, line_start: int) -> Iterator[tuple[int, str]]:
    """(start, line) of the lines of `[first, line_start)`, the last first."""
    end = line_start - 1
    while end >= first:
        start = max(first, text.rfind("\n", first, end) + 1)
        yield start, text[start:end]
        end = start - 1
