"""lacuna/rewrite: a selection rewritten by an instruction, for clients that show the change before it is made.

`{textDocument: {uri, version?}, range, instruction, seed?, workDoneToken?}` returns
`{version, range, newText, hunks: [{range, newText}], note?}`, or null where nothing came of it, which the person has
been told. `version` is that of the document by then and `range` where the selection stands in it: changes of other
lines move it, a change of its own lines ends the request with ContentModified. `hunks` are what can be taken or left
one by one, changed lines or the changed words of one line, in order and apart from each other, in positions of
`version`; all of them applied leave `newText` in `range`. `note` says what is wrong with the result. A `seed` from 1 on
asks for another text than the likeliest one, the same for the same number. Several requests may run at once about
places that do not overlap; drafts carry the request's token.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from lsp_server.edits import TextReplacement, apply_edits
from lsp_server.errand import Errand, may_ask
from lsp_server.errors import invalid_params
from lsp_server.hunks import hunks
from lsp_server.own_requests import count_of, document_of, instruction_of, plain, range_in, token_of
from lsp_server.passage import Passage, to_rewrite
from lsp_server.ranges import range_of, span_of
from lsp_server.revision import Revision, revise
from lsp_server.session import Session

METHOD = "lacuna/rewrite"
# What every language that JSON is read in counts exactly.
HIGHEST_SEED = 2**31 - 1


def rewrite(session: Session, params: object) -> Awaitable[dict[str, Any] | None] | None:
    """Raises JsonRpcInvalidParams for parameters that make no sense, JsonRpcContentModified for an older version."""
    given = plain(params)
    instruction, area, token = instruction_of(given), range_in(given.get("range")), token_of(given)
    seed = count_of(given, "seed", HIGHEST_SEED)
    snapshot = document_of(given, session)
    start, end = span_of(snapshot, area)
    if start == end:
        raise invalid_params("the range is empty: select the text to rewrite")
    if not may_ask(session, snapshot):
        return None
    passage = to_rewrite(snapshot.document.text, start, end, instruction, seed=seed)
    return _rewritten(Errand(session, snapshot, start, end, "Rewrite", token, is_alone=False), passage)


async def _rewritten(errand: Errand, passage: Passage) -> dict[str, Any] | None:
    async def result() -> dict[str, Any]:
        return _result(errand, await revise(errand, passage))

    return await errand.run(result)


def _result(errand: Errand, revision: Revision) -> dict[str, Any]:
    snapshot, start, end = errand.snapshot, errand.anchor.start, errand.anchor.end
    before = snapshot.document.text[start:end]
    after = apply_edits(before, [_shifted(item, -start) for item in revision.replacements])
    result = {
        "version": snapshot.document.version,
        "range": range_of(snapshot, start, end),
        "newText": after,
        "hunks": [
            {"range": range_of(snapshot, hunk.start, hunk.end), "newText": hunk.text}
            for hunk in hunks(before, after, start)
        ],
    }
    return result | ({"note": revision.note} if revision.note else {})


def _shifted(item: TextReplacement, by: int) -> TextReplacement:
    return replace(item, start=item.start + by, end=item.end + by)
