"""What kind of place the cursor is in, and whether a splice still parses.

A grammar is asked where there is one (see `grammars`), text rules answer otherwise. Must not decide what is shown:
see `ghost_text`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from lsp_server import lexing
from lsp_server.grammars import Grammar, grammar_of, parser_of
from lsp_server.languages import Language, language_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

PositionKind = Literal["code", "comment", "string"]

# A grammar reads about a megabyte a second, and a key press must not wait: larger texts are read around the cursor.
_PARSED_CHARS = 24_000
_BLOCK_START = re.compile(r"^[^\s#/*)\]}]", re.MULTILINE)


def position_kind(text: str, offset: int, language: str) -> PositionKind:
    """Whether text typed at `offset` would be code, a comment or part of a string."""
    start, stop = _region(text, offset)
    part, place = text[start:stop], offset - start
    facts = language_of(language)
    kind = _kind_by_rules(part[:place], facts)
    # The rules read every language and unfinished text. Only a grammar sees the code in `f"{x}"` and that the
    # apostrophe of JSX prose opens nothing.
    return kind if kind == "code" else tree_kind(part, place, facts.grammar) or kind


def tree_kind(text: str, offset: int, grammar: str) -> PositionKind | None:
    """The kind of place as the grammar sees it; None without one, and where the text around does not parse."""
    parser, facts = parser_of(grammar), grammar_of(grammar)
    if parser is None or facts is None:
        return None
    place = len(text[:offset].encode("utf-8", "replace"))
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    node = root.descendant_for_byte_range(max(place - 1, 0), place)
    return _kind_of_node(node, place, facts)


def prefers_single_line(text: str, offset: int, language: str) -> bool:
    """True where a completion should stay on the cursor's line: text follows on it, or a bracket is open on it."""
    start, stop = _region(text, offset)
    facts = language_of(language)
    line_start = text.rfind("\n", 0, offset) + 1
    if text[offset : _line_end(text, offset, stop)].strip():
        return True
    stack = lexing.stack_after(text[start:line_start], facts)
    outer = len(stack)
    for event in lexing.scan(text[line_start:offset], facts, stack):
        stack, outer = event.after, min(outer, len(event.after))
    if lexing.is_comment(stack, facts) or lexing.is_string(stack, facts):
        return lexing.is_line_comment(stack, facts) or not _is_multiline_string(stack, facts)
    opened_here = stack[outer:]
    enclosing = opened_here or (stack if text[line_start:offset].strip() else ())
    return bool(enclosing) and enclosing[-1] in ("(", "[")


def new_errors(before: str, after: str, language: str) -> bool:
    """True when `after` has more syntax errors than `before`.

    Texts too large to parse, and languages without a grammar, are judged by their brackets and strings.
    """
    facts = language_of(language)
    parser = parser_of(facts.grammar)
    if parser is None or max(len(before), len(after)) > _PARSED_CHARS:
        return _bracket_faults(after, facts) > _bracket_faults(before, facts)
    return _error_count(parser, after) > _error_count(parser, before)


def has_errors(text: str, language: str) -> bool:
    """True when `text` by itself does not parse (or, without a grammar, its brackets and strings are uneven)."""
    return new_errors("", text, language)


def has_grammar(language: str) -> bool:
    """True when trees, not only text rules, judge this language here."""
    return parser_of(language_of(language).grammar) is not None


def _line_end(text: str, offset: int, stop: int) -> int:
    end = text.find("\n", offset, stop)
    return stop if end < 0 else end


def _region(text: str, offset: int) -> tuple[int, int]:
    """The part of `text` to read for `offset`: all of it, or from the start of a top-level line well before."""
    if len(text) <= _PARSED_CHARS:
        return 0, len(text)
    left = max(0, offset - _PARSED_CHARS // 2)
    top_level = _BLOCK_START.search(text, left, offset) if left else None
    return (top_level.start() if top_level else left), min(len(text), offset + _PARSED_CHARS // 4)


def _kind_by_rules(before: str, facts: Language) -> PositionKind:
    stack = lexing.stack_after(before, facts)
    if lexing.is_comment(stack, facts):
        return "comment"
    return "string" if lexing.is_string(stack, facts) else "code"


def _is_multiline_string(stack: lexing.Stack, facts: Language) -> bool:
    quote = lexing.quote_at(stack, facts)
    return quote is not None and quote.multiline


def _kind_of_node(node: Node | None, place: int, facts: Grammar) -> PositionKind | None:
    """What the innermost telling node says. Where the text does not parse, that nothing tells means nothing."""
    is_certain = True
    while node is not None:
        if node.type in facts.prose:
            return "code"
        if node.type in facts.holes and node.start_byte < place < node.end_byte:
            return "code"
        if node.type in facts.comments:
            return "comment"
        if node.type in facts.strings:
            return "string"
        is_certain = not node.has_error
        node = node.parent
    return "code" if is_certain else None


def _error_count(parser: Parser, text: str) -> int:
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    count, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        count += node.is_error or node.is_missing
        waiting += _faulty_children(node)
    return count


def _faulty_children(node: Node) -> list[Node]:
    return [child for child in node.children if child.has_error] if node.has_error else []


def _bracket_faults(text: str, facts: Language) -> int:
    """Brackets and strings left open, closed too early or closed without having been opened."""
    stack: lexing.Stack = ()
    faults = 0
    for event in lexing.scan(text, facts):
        faults += max(1, abs(len(event.before) - len(event.after))) - 1 + (event.before == event.after)
        if text[event.start : event.end] == "\n" and lexing.is_string(event.before, facts):
            faults += 1
        stack = event.after
    return faults + len(lexing.without_line_comment(stack, facts))
