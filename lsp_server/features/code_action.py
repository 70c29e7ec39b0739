"""textDocument/codeAction: what could be done with a selection. Never asks the engine.

Each action carries a ticket; the edit is made by `codeAction/resolve` once the person has picked one.
"""

from __future__ import annotations

from lsprotocol import types

from lsp_server.privacy import refusal
from lsp_server.ranges import span_of
from lsp_server.rewrite import ACTIONS, Action, Ticket, is_wanted, to_data
from lsp_server.session import Session, Snapshot


def code_action(session: Session, params: types.CodeActionParams) -> list[types.CodeAction]:
    """The rewrites of a selection that the client asked for; none without one."""
    snapshot = session.snapshot(params.text_document.uri)
    if snapshot is None or not _is_possible(snapshot):
        return []
    start, end = span_of(snapshot, params.range)
    if start == end:
        return []
    only = tuple(str(getattr(kind, "value", kind)) for kind in params.context.only or ())
    blank = not snapshot.document.text[start:end].strip()
    return [
        _offer(snapshot, action, start, end)
        for action in ACTIONS
        if is_wanted(action.kind, only if params.context.only is not None else None)
        # There is nothing to follow an instruction on in blank text; filling it is what one may want.
        and not (blank and action.instruction)
    ]


def _is_possible(snapshot: Snapshot) -> bool:
    """A client that cannot resolve an edit could never apply one, so it is offered nothing."""
    if not snapshot.settings.enable or not snapshot.capabilities.resolves_edits:
        return False
    return refusal(snapshot.document, snapshot.settings) is None


def _offer(snapshot: Snapshot, action: Action, start: int, end: int) -> types.CodeAction:
    document = snapshot.document
    ticket = Ticket(document.uri, document.version, start, end, action.name)
    tags = [types.CodeActionTag.LlmGenerated] if snapshot.capabilities.tags_actions else None
    return types.CodeAction(title=action.title, kind=action.kind, data=to_data(ticket), tags=tags)
