"""Messages and remedies come from many places, with and without a full stop; a person reads sentences."""

from __future__ import annotations

import pytest

from lsp_server.sentences import sentences


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
