"""Several texts of an engine for one gap, each made presentable, none of them twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsp_server.document import Document
from lsp_server.ghost_text import GhostText, present_in


def presentable(
    document: Document, offset: int, raws: Iterable[str], *, single_line: bool, automatic: bool
) -> Iterator[GhostText]:
    """What of `raws` is worth showing at `offset`, in their order."""
    for raw in raws:
        ghost = present_in(document, offset, raw, single_line=single_line, automatic=automatic)
        if ghost is not None:
            yield ghost


def distinct(ghosts: Iterable[GhostText]) -> tuple[GhostText, ...]:
    """`ghosts` without those that would leave the same text as an earlier one, but for blanks at its end."""
    found: dict[tuple[int, int, str], GhostText] = {}
    for ghost in ghosts:
        found.setdefault((ghost.start, ghost.end, ghost.text.rstrip()), ghost)
    return tuple(found.values())
