"""Instructions that a person writes into the text: `# lacuna: use a generator`, in any language's comment syntax.

Pure. Owns which comments are instructions and what each says; what code they are about is for `commented_code`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from lsp_server import lexing
from lsp_server.languages import Language, language_of

_WORD = re.compile(r"\blacuna\s*:", re.IGNORECASE)
_INSTRUCTION = re.compile(r"(?:(?:=begin|@?rem)\b)?\W*(lacuna\s*:\s*)", re.IGNORECASE)
# The longer ones first.
_CLOSERS = ("-#}", "#}", "*/", "-->", "--]]", "]]", "*)", "-}", "=#", "#>", "=end")
_STARS = re.compile(r"^[ \t]*\*+[ \t]?", re.MULTILINE)
# Signs that may be written in front of what closes a comment: `**/`, `-#}`.
_BEFORE_CLOSER = MappingProxyType({"*/": "*", "#}": "-"})
# Comments of languages whose syntax nobody told us, and of prose.
_ANY_BLOCK = MappingProxyType({"{#": "#}", "/*": "*/", "<!--": "-->", "(*": "*)", "{-": "-}"})
_ANY_COMMENT = re.compile(r"(?:#|//|--|;+|%|\"|')[^\n\r]*|(?P<block>\{#|/\*|<!--|\(\*|\{-)")
# How far around a place a comment is looked for: a block comment may go over some lines.
_NEAR_CHARS = 2_000
# A comment is one only outside of strings, so the text is read from well before; a large file not from its start.
_SCANNED_CHARS = 24_000
_TOP_LEVEL = re.compile(r"^[^\W\d]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class InstructionComment:
    """A comment at `[start, end)` whose text is `instruction`; `plain` is the comment without the word `lacuna:`."""

    start: int
    end: int
    instruction: str
    plain: str


def comments_near(text: str, start: int, end: int, language: str) -> list[InstructionComment]:
    """The instruction comments around `[start, end)`, in order: all inside, and those a few lines away."""
    stop = end + _NEAR_CHARS
    if not _WORD.search(text, max(0, start - _NEAR_CHARS), stop):
        return []
    # The scanner ends lines at line feeds; a line feed for every carriage return leaves all offsets where they are.
    feeds = text.replace("\r", "\n")
    first = _scan_start(feeds, start)
    facts = language_of(language)
    spans = _comment_spans(feeds[first:], stop - first, facts)
    read = [_read(text, first + opened, first + closed, facts) for opened, closed in spans]
    return [comment for comment in read if comment is not None and comment.end >= start - _NEAR_CHARS]


def _scan_start(text: str, start: int) -> int:
    """Where to begin to read: at the text's start, or at some top-level line well before a place far down."""
    if start <= _SCANNED_CHARS:
        return 0
    top_level = _TOP_LEVEL.search(text, start - _SCANNED_CHARS, start - _NEAR_CHARS)
    return top_level.start() if top_level else 0


def _comment_spans(text: str, stop: int, language: Language) -> list[tuple[int, int]]:
    """Where the comments that start before `stop` start and end."""
    if not language.line_comments and not language.block_comments:
        return [span for span in _any_comments(text) if span[0] < stop]
    spans, opened = [], -1
    for event in lexing.scan(text, language):
        was, is_now = lexing.is_comment(event.before, language), lexing.is_comment(event.after, language)
        if is_now and not was:
            if event.start >= stop:
                break
            opened = event.start
        elif was and not is_now:
            spans.append((opened, event.start if lexing.is_line_comment(event.before, language) else event.end))
            opened = -1
    return [*spans, (opened, len(text))] if opened >= 0 else spans


def _read(text: str, start: int, end: int, language: Language) -> InstructionComment | None:
    comment = text[start:end].rstrip()
    match = _INSTRUCTION.match(comment)
    if match is None:
        return None
    body = _STARS.sub("", _without_closer(comment, language)[match.end() :].replace("\r", "\n"))
    instruction = " ".join(body.split())
    if not instruction:
        return None
    plain = comment[: match.start(1)] + comment[match.end(1) :]
    return InstructionComment(start, start + len(comment), instruction, plain)


def _any_comments(text: str) -> Iterator[tuple[int, int]]:
    """The spans of whatever looks like a comment. What closes no block is looked for once, not behind every opener."""
    place, missing = 0, set[str]()
    while (match := _ANY_COMMENT.search(text, place)) is not None:
        start, place = match.span()
        if opener := match["block"]:
            closer = _ANY_BLOCK[opener]
            end = -1 if closer in missing else text.find(closer, place)
            if end < 0:
                missing.add(closer)
                place = start + 1
                continue
            place = end + len(closer)
        yield start, place


def _without_closer(comment: str, language: Language) -> str:
    """A comment without what closes it, which in a line comment is text."""
    for opener, closer in language.block_comments:
        if comment.startswith(opener):
            return comment.removesuffix(closer).rstrip(_BEFORE_CLOSER.get(closer, "")).rstrip()
    if language.line_comments:
        return comment
    ended = comment.rstrip()
    closer = next((one for one in _CLOSERS if ended.endswith(one)), "")
    if not closer:
        return comment
    return ended.removesuffix(closer).rstrip("*" if closer == "*/" else "").rstrip()
