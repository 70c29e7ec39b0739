"""What an engine says again although it stands at the cursor: only what can never be meant twice is taken off."""

from __future__ import annotations

import pytest

from lsp_server.ghost_text.repeated_head import without_repeated_head
from lsp_server.ghost_text.surroundings import Surroundings


@pytest.mark.parametrize(
    ("head", "said", "kept"),
    [
        ("y = ", "= 3", "3"),
        ("y = ", " = 3", "3"),
        ("total += ", "= 3", "3"),
        ("y = ", "== 3", "== 3"),
        ("y == ", "= 3", "= 3"),
        ("y =", "= 3", "= 3"),
        ("# = ", "= = =", "= = ="),
        ("return max(", "max(1, 2)", "max(1, 2)"),
        ("    value = other", "value = other + 1", " + 1"),
        ("value = other ", "value = other + 1", "+ 1"),
        ("coun", "count", "t"),
    ],
)
def test_a_second_sign_of_an_assignment_goes(head: str, said: str, kept: str) -> None:
    place = Surroundings.of(head, len(head), "python")
    assert without_repeated_head(said, place) == kept
