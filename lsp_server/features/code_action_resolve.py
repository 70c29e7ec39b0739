"""codeAction/resolve: the edit of the action a person has picked, for exactly the text it was offered on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
from lsprotocol import types

from lsp_server import actions, passage
from lsp_server.commented_code import passage_of_comments
from lsp_server.errand import Errand, may_ask
from lsp_server.errors import content_modified
from lsp_server.hole_filling import fill_holes
from lsp_server.holes import Hole, find_holes
from lsp_server.offered_edit import offered_edit
from lsp_server.passage import Passage
from lsp_server.revision import Revision, revise
from lsp_server.session import Session, Snapshot
from lsp_server.tickets import Ticket, is_current, parse_ticket


def code_action_resolve(session: Session, action: types.CodeAction) -> Awaitable[types.CodeAction] | types.CodeAction:
    """The same action with its edit; unchanged when its data is not ours or there is nothing to change.

    Raises JsonRpcContentModified when the text is no longer the one the action was offered on.
    """
    ticket = parse_ticket(action.data)
    if ticket is None:
        return action
    snapshot = session.snapshot(ticket.uri)
    if snapshot is None or not is_current(ticket, snapshot.document):
        raise content_modified()
    if not may_ask(session, snapshot):
        return action
    prepared = _prepared(session, snapshot, ticket, action.title)
    return action if prepared is None else _resolve(action, *prepared)


def _prepared(
    session: Session, snapshot: Snapshot, ticket: Ticket, title: str
) -> tuple[Errand, Callable[[Errand], Awaitable[Revision]]] | None:
    """The errand that a ticket asks for, made before anything is awaited; None when the settings forbid it by now."""
    if ticket.action == actions.FILL_HOLES:
        start = ticket.start
        found = find_holes(snapshot.document.text, snapshot.settings.hole_markers, start, ticket.end)
        if not found:
            return None
        holes = [Hole(hole.start - start, hole.end - start) for hole in found]
        errand = Errand(session, snapshot, start, ticket.end, title, None)
        return errand, lambda errand: fill_holes(errand, holes)
    chosen = _passage(snapshot, ticket)
    if chosen is None:
        return None
    errand = Errand(session, snapshot, chosen.start, chosen.end, title, None)
    return errand, lambda errand: revise(errand, chosen)


def _passage(snapshot: Snapshot, ticket: Ticket) -> Passage | None:
    text = snapshot.document.text
    if ticket.action == actions.COMMENT:
        return passage_of_comments(text, ticket.start, ticket.end, snapshot.document.language)
    if ticket.action == actions.FILL:
        return passage.to_fill(text, ticket.start, ticket.end)
    return passage.to_rewrite(text, ticket.start, ticket.end, ticket.instruction)


async def _resolve(
    action: types.CodeAction, errand: Errand, work: Callable[[Errand], Awaitable[Revision]]
) -> types.CodeAction:
    async def edit() -> types.WorkspaceEdit:
        revision = await work(errand)
        snapshot = errand.snapshot
        if revision.note and not snapshot.capabilities.annotates_edits:
            errand.tell(f"Lacuna: {revision.note}")
        return offered_edit(snapshot, revision.replacements, errand.title, revision.note)

    made = await errand.run(edit)
    return attrs.evolve(action, edit=made) if made is not None else action
