"""textDocument/codeAction: what could be done at a selection, a diagnostic or an instruction. Never asks the engine.

Each action carries a ticket; the edit is made by `codeAction/resolve` once the person has picked one, or by a command
where the client cannot resolve. None is ever marked as preferred: what a model writes is to be chosen, not applied by
a key that means "the obvious fix".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types

from lsp_server import actions
from lsp_server.actions import APPLY, Action, is_wanted
from lsp_server.commented_code import instructed
from lsp_server.holes import find_holes
from lsp_server.privacy import explained, refusal
from lsp_server.ranges import span_of
from lsp_server.session import Session, Snapshot
from lsp_server.stubs import is_unfinished
from lsp_server.surroundings import has_surroundings
from lsp_server.tickets import ticket_for, to_data
from lsp_server.words import whole_words

MOST_FIXES = 8
# Fewer characters than this many per token are never needed, so that a longer selection is sure to be cut off.
MOST_CHARS_PER_TOKEN = 10


@dataclass(frozen=True, slots=True)
class Offer:
    """An action on `[start, end)`; `reason` says why it cannot be used, `diagnostic` what it is for."""

    action: Action
    start: int
    end: int
    reason: str = ""
    diagnostic: types.Diagnostic | None = None


def code_action(session: Session, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What the client asked for: nothing that does not apply, and nothing of its own accord without a reason."""
    snapshot = session.snapshot(params.text_document.uri)
    if snapshot is None or not snapshot.settings.enable:
        return []
    # A client that can neither resolve an edit nor have one sent to it could never apply one.
    if not (snapshot.capabilities.resolves_edits or snapshot.capabilities.applies_edits):
        return []
    context = params.context
    is_automatic = context.trigger_kind == types.CodeActionTriggerKind.Automatic
    only = None if context.only is None else [str(getattr(kind, "value", kind)) for kind in context.only]
    return [
        _shown(snapshot, offer)
        for offer in _offers(snapshot, params, is_automatic=is_automatic)
        if is_wanted(offer.action.kind, only)
        and (not offer.reason or (snapshot.capabilities.disables_actions and not is_automatic))
    ]


def _offers(snapshot: Snapshot, params: types.CodeActionParams, *, is_automatic: bool) -> Iterator[Offer]:
    start, end = span_of(snapshot, params.range)
    refused = refusal(snapshot.document, snapshot.settings)
    if refused is not None:
        if start < end:
            yield Offer(actions.FILL_SELECTION, start, end, explained(refused))
        return
    whole = whole_words(snapshot.document, start, end)
    yield from _fixes(snapshot, params.context.diagnostics, *whole)
    # A light bulb on every line that is not even selected is noise.
    if start < end or not is_automatic:
        yield from _followed(snapshot, start, end)
    if start < end:
        yield from _fills(snapshot, start, end)
        yield from _rewrites(snapshot, *whole)


def _fixes(snapshot: Snapshot, diagnostics: Sequence[types.Diagnostic], start: int, end: int) -> Iterator[Offer]:
    """One quick fix for each diagnostic: on the selection that holds it, or else on its lines."""
    text = snapshot.document.text
    for diagnostic in diagnostics[:MOST_FIXES]:
        first, last = span_of(snapshot, diagnostic.range)
        problem = diagnostic.message if diagnostic.message.strip() else _name_of(diagnostic)
        if not problem:
            continue
        action = actions.fix_for(problem, text[first:last])
        is_inside = start < end and start <= first and last <= end
        place = (start, end) if is_inside else _whole_lines(text, first, last)
        if place[0] < place[1]:
            yield Offer(action, *place, diagnostic=diagnostic)


def _name_of(diagnostic: types.Diagnostic) -> str:
    """What a diagnostic without a message is called."""
    names = (diagnostic.source, diagnostic.code)
    return " ".join(str(name) for name in names if name is not None and str(name).strip())


def _followed(snapshot: Snapshot, start: int, end: int) -> Iterator[Offer]:
    """The rewrite that an instruction in a comment asks for."""
    document = snapshot.document
    found = instructed(document.text, start, end, document.language)
    if found is None:
        return
    passage = found.passage
    action = actions.following(passage.instruction) if passage.instruction else actions.writing(passage.hint)
    yield Offer(action, found.start, found.end)


def _fills(snapshot: Snapshot, start: int, end: int) -> Iterator[Offer]:
    """What both sides of a selection, or of the holes in it, tell."""
    document = snapshot.document
    if has_surroundings(snapshot, document, start, end):
        yield Offer(actions.FILL_SELECTION, start, end)
    holes = find_holes(document.text, snapshot.settings.hole_markers, start, end)
    if len(holes) > 1 or any(has_surroundings(snapshot, document, hole.start, hole.end) for hole in holes):
        yield Offer(actions.fill_holes(len(holes)), start, end)


def _rewrites(snapshot: Snapshot, start: int, end: int) -> Iterator[Offer]:
    """What a selection can be made into by an instruction. No instruction is about a part of a word."""
    document, settings = snapshot.document, snapshot.settings
    selected = document.text[start:end]
    most = settings.rewrite_max_tokens * MOST_CHARS_PER_TOKEN
    is_too_long = len(selected) > most
    reason = f"Select less: an answer longer than `rewrite.maxTokens` ({settings.rewrite_max_tokens}) is cut off."
    is_stub = not is_too_long and is_unfinished(document.text, start, end, document.language)
    for action in actions.prepared_for(document.language, selected, is_unfinished=is_stub):
        yield Offer(action, start, end, reason if is_too_long else "")
    if selected.strip():
        for action in actions.own_for(document.language, settings.own_actions):
            yield Offer(action, start, end, reason if is_too_long else "")


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """The lines of a span, without the line end behind them."""
    first = max(text.rfind(mark, 0, start) for mark in ("\n", "\r")) + 1
    # A span that ends at the start of a line holds nothing of that line.
    last = end - 1 if end > start and text[end - 1] in "\r\n" else end
    found = [place for place in (text.find(mark, last) for mark in ("\n", "\r")) if place >= 0]
    return first, min(found, default=len(text))


def _shown(snapshot: Snapshot, offer: Offer) -> types.CodeAction:
    action = offer.action
    ticket = ticket_for(snapshot.document, offer.start, offer.end, action.name, action.instruction)
    data = None if offer.reason else to_data(ticket)
    resolves = snapshot.capabilities.resolves_edits
    argument = {"title": action.title, "ticket": data}
    return types.CodeAction(
        title=action.title,
        kind=action.kind,
        diagnostics=[offer.diagnostic] if offer.diagnostic is not None else None,
        disabled=types.CodeActionDisabled(offer.reason) if offer.reason else None,
        command=None if resolves or data is None else types.Command(action.title, APPLY, arguments=[argument]),
        data=data if resolves else None,
        tags=[types.CodeActionTag.LlmGenerated] if snapshot.capabilities.tags_actions else None,
    )
