"""codeAction/resolve: the edit of the action a person has picked, for exactly the version it was offered on."""

from __future__ import annotations

from collections.abc import Awaitable

import attrs
from lsprotocol import types

from lsp_server.errors import content_modified
from lsp_server.inflight import Job
from lsp_server.revision import Selection, may_revise, revise
from lsp_server.rewrite import Action, Ticket, action_named, is_current, parse_ticket
from lsp_server.session import Session, Snapshot


def code_action_resolve(session: Session, action: types.CodeAction) -> Awaitable[types.CodeAction] | types.CodeAction:
    """The same action with its edit; unchanged when its data is not ours or there is nothing to change.

    Raises JsonRpcContentModified when the text is no longer the one the action was offered on.
    """
    ticket = parse_ticket(action.data)
    chosen = action_named(ticket.action) if ticket is not None else None
    if ticket is None or chosen is None:
        return action
    snapshot = session.snapshot(ticket.uri)
    if snapshot is None or not is_current(ticket, snapshot.document):
        raise content_modified()
    if not may_revise(session, snapshot):
        return action
    job = session.inflight.claim(ticket.uri, "rewrite")
    return _resolve(session, job, snapshot, action, _selection(snapshot, ticket, chosen))


def _selection(snapshot: Snapshot, ticket: Ticket, chosen: Action) -> Selection:
    if not chosen.instruction:
        return Selection.to_fill(snapshot.document, ticket.start, ticket.end)
    return Selection(ticket.start, ticket.end, chosen.instruction)


async def _resolve(
    session: Session, job: Job, snapshot: Snapshot, action: types.CodeAction, selection: Selection
) -> types.CodeAction:
    edit = await revise(session, job, snapshot, selection)
    return attrs.evolve(action, edit=edit) if edit is not None else action
