"""A ticket redeemed: the errand it stands for, and the edit that comes of it.

Shared by `codeAction/resolve` and the command of clients that cannot resolve. Owns which kind of work a ticket means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lsprotocol import types

from lsp_server import actions, passage
from lsp_server.commented_code import instructed
from lsp_server.errand import Errand, may_ask
from lsp_server.errors import outdated
from lsp_server.hole_filling import fill_holes
from lsp_server.holes import Hole, find_holes
from lsp_server.offered_edit import offered_edit
from lsp_server.passage import Passage
from lsp_server.progress import Token
from lsp_server.revision import Revision, revise
from lsp_server.session import Session, Snapshot
from lsp_server.stubs import find_stubs
from lsp_server.tickets import Ticket, brought_up


@dataclass(frozen=True, slots=True)
class Redeemed:
    """An errand that holds its document's place, and the work that is to be done."""

    errand: Errand
    work: Callable[[], Awaitable[Revision]]

    async def edit(self, *, annotates: bool) -> types.WorkspaceEdit | None:
        """The edit; None when there is none to make, and the person was told why. Raises as `Errand.run` does."""

        async def made() -> types.WorkspaceEdit:
            revision, snapshot = await self.work(), self.errand.snapshot
            if revision.note and not (annotates and snapshot.capabilities.annotates_edits):
                self.errand.tell(f"Lacuna: {revision.note}")
            return offered_edit(snapshot, revision.replacements, self.errand.title, revision.note, annotates=annotates)

        return await self.errand.run(made)


def redeem(session: Session, ticket: Ticket, title: str, token: Token | None) -> Redeemed | None:
    """The work of a ticket, begun before anything is awaited; None when it may not be done, and the person was told.

    Raises JsonRpcContentModified when the text is no longer the one the ticket was made for.
    """
    snapshot = session.snapshot(ticket.uri)
    current = brought_up(ticket, snapshot.document, session.trail(ticket.uri)) if snapshot is not None else None
    if snapshot is None or current is None:
        raise outdated()
    ticket = current
    if not may_ask(session, snapshot):
        return None
    found = _holes(snapshot, ticket)
    if found or ticket.action == actions.FILL_HOLES:
        holes = [Hole(hole.start - ticket.start, hole.end - ticket.start, hole.lead) for hole in found]
        errand = Errand(session, snapshot, ticket.start, ticket.end, title, token)
        return Redeemed(errand, lambda: fill_holes(errand, holes))
    chosen = _passage(snapshot, ticket)
    errand = Errand(session, snapshot, chosen.start, chosen.end, title, token)
    return Redeemed(errand, lambda: revise(errand, chosen))


def _holes(snapshot: Snapshot, ticket: Ticket) -> list[Hole]:
    """The holes to be filled. A stub is one: what belongs there is better told by both sides than by an instruction."""
    document = snapshot.document
    if ticket.action == actions.FILL_HOLES:
        return find_holes(document.text, snapshot.settings.hole_markers, ticket.start, ticket.end)
    if ticket.action == actions.COMPLETE_BODY:
        return find_stubs(document.text, ticket.start, ticket.end, document.language)
    return []


def _passage(snapshot: Snapshot, ticket: Ticket) -> Passage:
    text = snapshot.document.text
    if ticket.action == actions.FILL:
        return passage.to_fill(text, ticket.start, ticket.end)
    found = None
    if ticket.action == actions.COMMENT:
        found = instructed(text, ticket.start, ticket.end, snapshot.document.language)
    if found is not None:
        return found.passage
    only_prose = ticket.action == actions.DOCSTRING
    return passage.to_rewrite(text, ticket.start, ticket.end, ticket.instruction, only_prose=only_prose)
