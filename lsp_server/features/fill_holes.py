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
from lsp_server.errors import invalid_params, outdated
from lsp_server.hole_filling import fill_holes
from lsp_server.holes import Hole, find_holes
from lsp_server.progress import Token
from lsp_server.ranges import range_of, span_of
from lsp_server.reading import read_range
from lsp_server.session import Session

METHOD = "lacuna/fillHoles"
MOST_HOLES = 64


def fill_holes_of(session: Session, params: object) -> Awaitable[dict[str, Any] | None] | None:
    """Raises JsonRpcInvalidParams for parameters that make no sense, JsonRpcContentModified for an older version."""
    uri, version, areas, token = _arguments(_plain(params))
    snapshot = session.snapshot(uri)
    if snapshot is None:
        raise invalid_params("the document is not open")
    if version is not None and version != snapshot.document.version:
        raise outdated()
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
    return _filled(Errand(session, snapshot, start, end, title, token), asked, start)


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


def _arguments(params: object) -> tuple[str, int | None, list[types.Range], Token | None]:
    head = params.get("textDocument") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(head, dict) or not isinstance(head.get("uri"), str):
        raise invalid_params(f"{METHOD} takes textDocument with a uri, and ranges")
    version, token, ranges = head.get("version"), params.get("workDoneToken"), params.get("ranges")
    if version is not None and not _is_whole_number(version):
        raise invalid_params("version must be a whole number")
    if token is not None and not (isinstance(token, str) or _is_whole_number(token)):
        raise invalid_params("workDoneToken must be a string or a whole number")
    if not isinstance(ranges, list) or not 0 < len(ranges) <= MOST_HOLES:
        raise invalid_params(f"ranges must be a list of 1 to {MOST_HOLES} LSP ranges")
    try:
        areas = [read_range(area) for area in ranges]
    except (ValueError, OverflowError):
        raise invalid_params("ranges must be LSP ranges") from None
    return head["uri"], version, areas, token


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: object) -> object:
    """pygls gives the parameters of a method it does not know as nested named tuples."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
