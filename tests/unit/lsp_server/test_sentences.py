"""Messages and remedies come from many places, with and without a full stop; a person reads sentences."""

from __future__ import annotations

import pytest

from lsp_server.sentences import capitalised, sentences


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            ("the engine went away before it answered", "ask again"),
            "the engine went away before it answered. Ask again.",
        ),
        (("There is no model.", "Run `lacuna doctor`."), "There is no model. Run `lacuna doctor`."),
        (
            ("it is not on this machine.;", "`lacuna models pull m`"),
            "it is not on this machine. `lacuna models pull m`.",
        ),
        (("why?", " wait … "), "why? Wait …"),
        (("alone", ""), "alone."),
        (("", "only this"), "only this."),
        (("", ""), ""),
    ],
)
def test_each_part_is_a_sentence(parts: tuple[str, ...], expected: str) -> None:
    assert sentences(*parts) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loading the model.", "Loading the model."),
        ("ready", "Ready"),
        ("example.org is not this machine.", "example.org is not this machine."),
        ("localhost:80 cannot be reached", "localhost:80 cannot be reached"),
        ("[::1]:8000 failed", "[::1]:8000 failed"),
        ("gpu7 failed", "gpu7 failed"),
        ("~/.config/token does not hold a token", "~/.config/token does not hold a token"),
        ("`lacuna doctor` says more", "`lacuna doctor` says more"),
        ("", ""),
    ],
)
def test_a_name_keeps_its_letters_in_front_of_a_sentence(text: str, expected: str) -> None:
    assert capitalised(text) == expected
    assert sentences("first", text) == sentences("first", expected)
