"""Ghost text beyond the golden cases: it never fails, stays on its line, and knows a document's own line ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import Document, for_model
from lsp_server.ghost_text import GhostText, present, present_in
from lsp_server.languages import language_of
from lsp_server.special_tokens import text_before_special

_PIECES = ["x", "é", "🙂", "(", ")", "{", "}", "[", "]", '"', "'", "`", "#", "//", "\n", "\r\n", "\r", "    ", "\t"]
_PIECES += [":", ";", ",", " ", "def f():", "end", "</p>", "<p>", "return 1", "${", '"""', "/*", "*/", "<|im_end|>"]
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)
_LANGUAGES = st.sampled_from(["python", "javascript", "go", "lua", "html", "rust", "unheard-of", "ruby", "yaml"])


@given(_TEXTS, _TEXTS, _TEXTS, _LANGUAGES, st.booleans(), st.sampled_from([None, True, False]))
def test_whatever_is_said_anywhere_the_offer_is_sound(
    before: str, after: str, said: str, language: str, automatic: bool, single_line: bool | None
) -> None:
    document = Document.open("untitled:a", 1, language, before + after)
    ghost = present_in(document, len(before), said, single_line=single_line, automatic=automatic)
    if ghost is None:
        return
    replaced = document.text[ghost.start : ghost.end]
    assert ghost.start <= len(before) <= ghost.end <= len(document.text)
    assert "\n" not in replaced
    assert "\r" not in replaced + ghost.text
    assert "<|im_end|>" not in ghost.text or "<|im_end|>" in document.text
    assert ghost.text.strip()
    assert "".join(ghost.text.split()) != "".join(replaced.split())


@given(_TEXTS, _TEXTS, _LANGUAGES)
def test_an_offer_taken_is_not_offered_again(before: str, said: str, language: str) -> None:
    text = for_model(before)
    ghost = present(said, text, len(text), language)
    if ghost is not None and "\n" not in ghost.text:
        taken = text[: ghost.start] + ghost.text
        assert present("", taken, len(taken), language) is None


def test_offsets_are_those_of_the_document_with_its_line_ends() -> None:
    document = Document.open("untitled:a", 1, "python", "a = 1\r\nb = f()\r\n")
    assert present_in(document, 13, "a)") == GhostText(13, 13, "a")
    assert present_in(document, 13, "a) + 1") == GhostText(13, 14, "a) + 1")


def test_a_cursor_inside_a_line_end_is_harmless() -> None:
    document = Document.open("untitled:a", 1, "python", "a = \r\nb")
    ghost = present_in(document, 4, "1")
    assert ghost == GhostText(4, 4, "1")


def test_a_far_away_fault_does_not_matter() -> None:
    text = "x = (((\n" + "def f():\n    return 1\n\n" * 4000
    head = text + "print("
    assert present("a)", head + ")\n", len(head), "python") == GhostText(len(head), len(head), "a")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a<|fim_prefix|>b", "a"),
        ("a<｜fim▁hole｜>b", "a"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("half \ud83d", "half "),
        ("f <| x |> g", "f <| x |> g"),
        ("a <b> c", "a <b> c"),
        ("", ""),
    ],
)
def test_text_ends_before_a_special_token(raw: str, text: str) -> None:
    assert text_before_special(raw) == text


def test_a_token_the_person_wrote_is_text() -> None:
    assert text_before_special("a<|im_end|>b<|fim_pad|>c", 'END = "<|im_end|>"') == "a<|im_end|>b"
    head = 'END = "<|im_end|>"\nif token == '
    found = present('"<|im_end|>":', head + "\n", len(head), "python")
    assert found is not None
    assert found.text == '"<|im_end|>":'


def test_every_language_of_the_table_can_be_read() -> None:
    for name in ("python", "rust", "typescriptreact", "shellscript", "yaml", "latex", "perl", "zig", "sql"):
        assert language_of(name) != language_of("unheard-of")
        assert present("y", "x = ", 4, name) == GhostText(4, 4, "y")
