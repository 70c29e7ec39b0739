"""lacuna/fillHoles: several places filled in one job, for plug-ins with more than one cursor or selection.

`{textDocument: {uri, version?}, ranges, workDoneToken?}` returns `{version, holes: [{range, newText}]}` or null. A
range that holds markers (setting `holes.markers`) stands for its holes, any other is a hole itself; an empty one is a
cursor. There is one entry for each hole, in the order asked, with a `newText` of null where nothing could be filled.
The engine is shown all holes that are near each other at once, so that each text fits the others, and nothing outside
the holes changes.
"""

from __future__ import annotations

from collections.abc import Awaitable
from itertools import pairwise
from typing import Any

from lsprotocol import types

from lsp_server.errand import Errand, may_ask
from lsp_server.errors import invalid_params
from lsp_server.hole_filling import fill_holes
from lsp_server.holes import Hole, find_holes
from lsp_server.own_requests import document_of, plain, range_in, token_of
from lsp_server.ranges import range_of, span_of
from lsp_server.session import Session

METHOD = "lacuna/fillHoles"
MOST_HOLES = 64


def fill_holes_of(session: Session, params: object) -> Awaitable[dict[str, Any] | None] | None:
    """Raises JsonRpcInvalidParams for parameters that make no sense, JsonRpcContentModified for an older version."""
    given = plain(params)
    areas, token = _areas(given.get("ranges")), token_of(given)
    snapshot = document_of(given, session)
    ranges = [Hole(*span_of(snapshot, area)) for area in areas]
    if any(right.start < left.end or right == left for left, right in pairwise(sorted(ranges))):
        raise invalid_params("the ranges overlap")
    text, markers = snapshot.document.text, snapshot.settings.hole_markers
    asked = [hole for area in ranges for hole in find_holes(text, markers, area.start, area.end) or [area]]
    ordered = sorted(asked)
    if not may_ask(session, snapshot):
        return None
    start, end = ordered[0].start, ordered[-1].end
    title = "Fill 1 hole" if len(asked) == 1 else f"Fill {len(asked)} holes"
    return _filled(Errand(session, snapshot, start, end, title, token, is_alone=False), asked, start)


async def _filled(errand: Errand, asked: list[Hole], start: int) -> dict[str, Any] | None:
    async def texts() -> dict[str, Any]:
        revision = await fill_holes(errand, [Hole(h.start - start, h.end - start) for h in sorted(asked)])
        if revision.note:
            errand.tell(f"Lacuna: {revision.note}")
        snapshot, shift = errand.snapshot, errand.anchor.start - start
        found = {(item.start, item.end): item.text for item in revision.replacements}
        places = [(hole.start + shift, hole.end + shift) for hole in asked]
        holes = [{"range": range_of(snapshot, *place), "newText": found.get(place)} for place in places]
        return {"version": snapshot.document.version, "holes": holes}

    return await errand.run(texts)


def _areas(ranges: object) -> list[types.Range]:
    if not isinstance(ranges, list) or not 0 < len(ranges) <= MOST_HOLES:
        raise invalid_params(f"ranges must be a list of 1 to {MOST_HOLES} LSP ranges")
    return [range_in(area) for area in ranges]
