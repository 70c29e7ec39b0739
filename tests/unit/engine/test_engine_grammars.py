"""The engine's grammars: where a text does not parse, and the same wheels that the language server uses."""

from __future__ import annotations

import pytest

from engine.grammars import GRAMMARS, error_spans, parser_for
from engine.protocol.errors import EngineError
from lsp_server.grammars import grammar_of
from lsp_server.languages import language_of

# Its wheel is no dependency; only training looks for it.
OPTIONAL = {"kotlin"}


@pytest.mark.parametrize("language", sorted(set(GRAMMARS) - OPTIONAL))
def test_every_grammar_is_there_and_the_server_s(language: str) -> None:
    assert error_spans(parser_for(language), "") == []
    facts = grammar_of(language_of(language).grammar)
    assert facts is not None
    assert GRAMMARS[language] == (facts.module, facts.entry)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("x = 1\n", []),
        ("é = (1\n", [(0, 6)]),
        ("x = 1\n🙂é = 1 )\n", [(6, 14)]),
    ],
)
def test_errors_are_counted_in_characters(text: str, spans: list[tuple[int, int]]) -> None:
    assert error_spans(parser_for("python"), text) == spans


@pytest.mark.parametrize("language", ["nonsense", "plaintext", ""])
def test_a_language_without_a_grammar_is_refused_with_a_remedy(language: str) -> None:
    with pytest.raises(EngineError, match="no grammar") as refused:
        parser_for(language)
    assert (refused.value.kind, "python" in refused.value.remedy) == ("bad_request", True)
