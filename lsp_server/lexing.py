"""Brackets, strings and comments of any language, read without a grammar.

Owns the scanner whose state is a stack of openers: `(`, `{`, `"`, `/*`, `#` and so on. Everything that must know
whether a bracket is a bracket asks here. Knows no grammar: see `syntax` for trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lsp_server.languages import Language, Quote

Stack = tuple[str, ...]

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}


@dataclass(frozen=True, slots=True)
class Event:
    """The text `[start, end)` changed the stack. A line end that closes a comment or string is an event too."""

    start: int
    end: int
    before: Stack
    after: Stack


@dataclass(frozen=True, slots=True)
class _Rules:
    """The regular expressions of one language, compiled."""

    code: re.Pattern[str]
    quotes: dict[str, Quote]
    inside_quote: dict[str, re.Pattern[str]]
    block_ends: dict[str, str]
    line_comments: frozenset[str]


def scan(text: str, language: Language, stack: Stack = ()) -> Iterator[Event]:
    """What happens to the stack along `text`, when it is `stack` at the start.

    A closer that fits no opener changes nothing and is reported with `before == after`; one that fits a deeper
    opener closes everything above it.
    """
    rules = _rules(language)
    place = 0
    while (found := _next_token(text, place, stack, rules)) is not None:
        start, place, after = found
        if after != stack or text[start:place] in OPENER_OF:
            yield Event(start, place, stack, after)
        stack = after


def stack_after(text: str, language: Language, stack: Stack = ()) -> Stack:
    """The stack at the end of `text`."""
    for event in scan(text, language, stack):
        stack = event.after
    return stack


def code_of_line(line: str, language: Language) -> str:
    """`line` without a line comment and without blanks at its end."""
    for event in scan(line, language):
        if is_line_comment(event.after, language):
            return line[: event.start].rstrip()
    return line.rstrip()


def is_comment(stack: Stack, language: Language) -> bool:
    """True when the place is inside a comment."""
    openers = {*language.line_comments, *(opener for opener, _ in language.block_comments)}
    return bool(stack) and stack[-1] in openers


def is_line_comment(stack: Stack, language: Language) -> bool:
    """True when the place is inside a comment that ends with its line."""
    return bool(stack) and stack[-1] in language.line_comments


def is_string(stack: Stack, language: Language) -> bool:
    """True when the place is inside a string."""
    return quote_at(stack, language) is not None


def quote_at(stack: Stack, language: Language) -> Quote | None:
    """The delimiter of the string the place is inside of, if it is inside one."""
    return next((quote for quote in language.quotes if stack and quote.open == stack[-1]), None)


def closer_of(opener: str, language: Language) -> str:
    """The text that closes `opener`; empty for what only a line end closes."""
    if opener in CLOSER_OF:
        return CLOSER_OF[opener]
    for quote in language.quotes:
        if quote.open == opener:
            return quote.close
        if quote.hole == opener:
            return "}"
    return dict(language.block_comments).get(opener, "")


def without_line_comment(stack: Stack, language: Language) -> Stack:
    """The stack without a line comment on top, which the next line end closes anyway."""
    return stack[:-1] if is_line_comment(stack, language) else stack


@lru_cache(maxsize=64)
def _rules(language: Language) -> _Rules:
    openers = [
        *language.line_comments,
        *(opener for opener, _ in language.block_comments),
        *(quote.open for quote in language.quotes),
        *CLOSER_OF,
        *OPENER_OF,
    ]
    literal = "|".join(re.escape(token) for token in sorted(openers, key=len, reverse=True))
    atoms = "".join(f"(?:{atom})|" for atom in language.atoms)
    return _Rules(
        re.compile(f"{atoms}({literal})"),
        {quote.open: quote for quote in language.quotes},
        {quote.open: _inside(quote) for quote in language.quotes},
        dict(language.block_comments),
        frozenset(language.line_comments),
    )


def _inside(quote: Quote) -> re.Pattern[str]:
    """What may end or interrupt a string: an escape (skipped), its delimiter, a line end, a hole."""
    parts = [re.escape(quote.close)]
    parts += [r"\n"] if not quote.multiline else []
    parts += [re.escape(quote.hole)] if quote.hole else []
    return re.compile((r"\\[\s\S]|" if quote.escapes else "") + "(" + "|".join(parts) + ")")


def _next_token(text: str, place: int, stack: Stack, rules: _Rules) -> tuple[int, int, Stack] | None:
    """The next token at or behind `place`: where it starts and ends, and the stack behind it."""
    top = stack[-1] if stack else ""
    if top in rules.quotes:
        return _in_string(text, place, stack, rules)
    if top in rules.block_ends:
        return _closed_by(text, place, stack, rules.block_ends[top])
    if top in rules.line_comments:
        return _closed_by(text, place, stack, "\n")
    for match in rules.code.finditer(text, place):
        if match.group(1):
            return match.start(), match.end(), _after_code(match.group(1), stack)
    return None


def _in_string(text: str, place: int, stack: Stack, rules: _Rules) -> tuple[int, int, Stack] | None:
    quote = rules.quotes[stack[-1]]
    for match in rules.inside_quote[stack[-1]].finditer(text, place):
        if match.group(1):
            after = (*stack, quote.hole) if quote.hole and match.group(1) == quote.hole else stack[:-1]
            return match.start(), match.end(), after
    return None


def _closed_by(text: str, place: int, stack: Stack, closer: str) -> tuple[int, int, Stack] | None:
    start = text.find(closer, place)
    return None if start < 0 else (start, start + len(closer), stack[:-1])


def _after_code(lexeme: str, stack: Stack) -> Stack:
    if lexeme not in OPENER_OF:
        return (*stack, lexeme)
    for depth in range(len(stack) - 1, -1, -1):
        opener = stack[depth]
        if opener == OPENER_OF[lexeme] or (lexeme == "}" and opener.endswith("{")):
            return stack[:depth]
        if opener not in CLOSER_OF:
            break  # A hole in a string holds brackets in.
    return stack
