"""Several texts of an engine, presentable and none of them twice."""

from __future__ import annotations

from lsp_server.alternatives import distinct, presentable
from lsp_server.document import Document
from lsp_server.ghost_text import GhostText


def test_texts_are_cleaned_and_empty_ones_left_out() -> None:
    document = Document.open("file:///a.py", 1, "python", "total = ")
    raws = ["a + b\n", "", "  ", "total = c"]
    ghosts = presentable(document, 8, raws, single_line=True, automatic=False)
    assert [ghost.text for ghost in ghosts] == ["a + b", "c"]


def test_texts_that_lead_to_the_same_are_one() -> None:
    ghosts = [
        GhostText(8, 8, "a"),
        GhostText(8, 8, "a  "),
        GhostText(8, 9, "a"),
        GhostText(8, 8, "b"),
        GhostText(8, 8, "a"),
    ]
    assert distinct(ghosts) == (GhostText(8, 8, "a"), GhostText(8, 9, "a"), GhostText(8, 8, "b"))
    assert distinct([]) == ()
