"""What is read by a few steps of Python, where an expression would be slow, is what the expression would read."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lsp_server import fences, instruction_comments, tokens
from lsp_server.ghost_text import tail
from lsp_server.languages import language_of
from lsp_server.words import word_at_end

ANY_COMMENT = re.compile(
    r"\{#.*?#\}|(?:#|//|--|;+|%|\"|')[^\n\r]*|/\*.*?\*/|<!--.*?-->|\(\*.*?\*\)|\{-.*?-\}", re.DOTALL
)
CLOSER = re.compile(r"\s*(?:-?#\}|\*+/|-->|--\]\]|\]\]|\*\)|-\}|=#|#>|=end)\s*\Z")
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`\n]*$")
PIECE = re.compile(r"(?P<word>[^\W\d_]+)|(?P<line_end>\s*\n)|[ \t]|\d|(?P<signs>[^\w\s]+|_+)|\s")
LONG = 200_000


def made_of(*parts: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts) | st.characters(codec="utf-8"), max_size=12).map("".join)


@given(made_of("a", "_", "é", "1", " ", "@", ".", "\u0301", "٣"))
def test_the_word_at_the_end(text: str) -> None:
    assert word_at_end(text) == re.search(r"\w*\Z", text)[0]  # type: ignore[index]
    assert word_at_end(text, "@#$") == re.search(r"[\w@#$]*\Z", text)[0]  # type: ignore[index]


@given(made_of("</", "a", ">", "</b>", "</>", " ", "<", "-:."))
def test_the_closing_tags_at_the_end(text: str) -> None:
    found = re.search(r"(?:</[\w.:-]*>)+\Z", text)
    assert text[tail._closing_tags_start(text) :] == (found[0] if found else "")


@given(made_of("{#", "#}", "/*", "*/", "<!--", "-->", "(*", "*)", "{-", "-}", "#", "//", "--", ";", "\n", "\r", "x"))
def test_whatever_looks_like_a_comment(text: str) -> None:
    assert list(instruction_comments._any_comments(text)) == [match.span() for match in ANY_COMMENT.finditer(text)]


@given(made_of("-#}", "#}", "*/", "**/", "-->", "--]]", "]]", "*)", "-}", "=#", "#>", "=end", " ", "\n", "x", "*"))
def test_what_closes_a_comment_of_an_unknown_language(text: str) -> None:
    plain = language_of("plaintext")
    assert not plain.line_comments
    assert instruction_comments._without_closer(text, plain) == CLOSER.sub("", text, count=1)


@given(made_of("`", "```", "~~~", " ", "\t", "py", "c++", "{x}", "-"))
def test_the_line_that_opens_a_fence(line: str) -> None:
    found, wanted = fences._FENCE.match(line), FENCE.match(line)
    # Behind a fence of backticks a tilde is no language, and no fence that anybody writes.
    if wanted and not wanted[2] and line[wanted.end(1) :].lstrip(" \t").startswith("~"):
        return
    assert (found and (found[1], found["info"] or "")) == (wanted and (wanted[1], wanted[2]))


@given(made_of("word", "Ж", " ", "\t", "\n", "\r", "\x0b", "1", "_", "=>", "\u2028"))
def test_the_estimate_of_tokens(text: str) -> None:
    def cost(piece: re.Match[str]) -> int:
        if piece.lastgroup in ("word", "signs"):
            return tokens._cost(piece)
        return 0 if piece.group() in (" ", "\t") else 1

    assert tokens.estimated_tokens(text) == sum(map(cost, PIECE.finditer(text)))


def test_long_texts_of_one_kind_are_read_to_their_end() -> None:
    """Each took minutes, or longer, as an expression; a test that hangs fails by the suite's limit."""
    assert tokens.estimated_tokens(" " * LONG + "x") == 1
    assert word_at_end("a" * LONG + "!") == ""
    assert tail._closing_tags_start("</a>" * LONG + "x") == 4 * LONG + 1
    assert list(instruction_comments._any_comments("{-" * LONG)) == []
    assert fences._FENCE.match("```" + "a" * LONG + "`") is None
    assert instruction_comments._without_closer(" " * LONG + "x", language_of("plaintext")).endswith("x")
