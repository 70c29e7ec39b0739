"""workspace/executeCommand: `lacuna.rewrite`, `lacuna.apply`, `lacuna.status` and `lacuna.accepted`.

`lacuna.rewrite {uri, range, instruction, version?}` returns a WorkspaceEdit or null: the client applies it. It reports
progress on the request's `workDoneToken`, or on a token of its own when it takes long.
`lacuna.apply {title, ticket}` stands in a code action for a client that cannot resolve one; the edit is sent to it.
`lacuna.status` returns what the server and its engine are doing.
`lacuna.accepted ticket` counts a suggestion that the editor has put in; editors run it, people need not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine.protocol.errors import EngineError
from lsp_server import __version__
from lsp_server.actions import APPLY
from lsp_server.commands import ACCEPTED, COMMANDS, REWRITE, STATUS
from lsp_server.errand import Errand, may_ask
from lsp_server.errors import invalid_params
from lsp_server.offered_edit import offered_edit
from lsp_server.own_requests import document_at, instruction_of, range_in
from lsp_server.passage import Passage, to_rewrite
from lsp_server.progress import Token
from lsp_server.ranges import span_of
from lsp_server.redeeming import Redeemed, redeem
from lsp_server.revision import revise
from lsp_server.session import Session
from lsp_server.tickets import parse_ticket

# How long the engine's own report may take.
REPORT_S = 2.0


def execute_command(session: Session, params: types.ExecuteCommandParams) -> Awaitable[Any] | None:
    """Raises JsonRpcInvalidParams for an unknown command or arguments that make no sense."""
    commands: dict[str, Callable[[Session, object], Awaitable[Any] | None]] = {
        REWRITE: partial(_rewrite, token=params.work_done_token),
        APPLY: partial(_apply, token=params.work_done_token),
        STATUS: _status,
        ACCEPTED: _accepted,
    }
    command = commands.get(params.command)
    if command is None:
        raise invalid_params(f"unknown command; there are {', '.join(COMMANDS)}")
    return command(session, params.arguments[0] if params.arguments else None)


def _rewrite(session: Session, argument: object, token: Token | None) -> Awaitable[types.WorkspaceEdit | None] | None:
    if not isinstance(argument, dict):
        raise invalid_params(f"{REWRITE} takes one object: uri, range, instruction")
    instruction, area = instruction_of(argument), range_in(argument.get("range"))
    snapshot = document_at(argument.get("uri"), argument.get("version"), session)
    start, end = span_of(snapshot, area)
    if start == end:
        raise invalid_params("the range is empty: select the text to rewrite")
    if not may_ask(session, snapshot):
        return None
    passage = to_rewrite(snapshot.document.text, start, end, instruction)
    return _revised(Errand(session, snapshot, start, end, "Rewrite", token), passage)


async def _revised(errand: Errand, passage: Passage) -> types.WorkspaceEdit | None:
    async def edit() -> types.WorkspaceEdit:
        revision = await revise(errand, passage)
        if revision.note:
            errand.tell(f"Lacuna: {revision.note}")
        # What a command returns the client applies by itself: only code actions have promised to be confirmed.
        return offered_edit(errand.snapshot, revision.replacements, errand.title, revision.note, annotates=False)

    return await errand.run(edit)


def _apply(session: Session, argument: object, token: Token | None) -> Awaitable[None] | None:
    ticket = parse_ticket(argument.get("ticket")) if isinstance(argument, dict) else None
    title = argument.get("title") if isinstance(argument, dict) else None
    if ticket is None or not isinstance(title, str):
        raise invalid_params(f"{APPLY} takes what a code action of this server carries")
    redeemed = redeem(session, ticket, title, token)
    return None if redeemed is None else _applied(session, redeemed)


async def _applied(session: Session, redeemed: Redeemed) -> None:
    edit = await redeemed.edit(annotates=False)
    if edit is None:
        return
    try:
        is_applied = await session.editor.apply_edit(redeemed.errand.title, edit)
    except JsonRpcException:
        is_applied = False
    if not is_applied:
        session.answer_act("Lacuna: the editor did not take the change, most likely since the text changed meanwhile.")


def _accepted(session: Session, argument: object) -> None:
    """Quiet about a ticket it does not know: a suggestion may be older than the server."""
    uri = session.typing.acceptance.accept(argument) if isinstance(argument, str) else None
    if uri is not None:
        # Who takes the text back must not be shown it at once.
        session.typing.memory.forget(uri)


async def _status(session: Session, _argument: object) -> dict[str, Any]:
    """Nothing in it quotes a document."""
    facts = session.engine.facts
    return {
        "version": __version__,
        "state": session.engine.state,
        "message": session.engine_message,
        "facts": asdict(facts) if facts is not None else None,
        "report": await _engine_report(session),
        "documents": session.document_count,
        "jobs": session.inflight.count,
        "positionEncoding": str(session.encoding.value),
        "enabled": session.settings.enable and not session.awaits_settings,
        "suggestions": session.typing.acceptance.counts(),
        "last": [{"kind": result.kind, "stats": asdict(result.stats)} for result in session.results],
    }


async def _engine_report(session: Session) -> dict[str, Any] | None:
    if session.engine.state != "ready":
        return None
    try:
        async with asyncio.timeout(REPORT_S):
            return asdict(await session.engine.status())
    except (EngineError, TimeoutError):
        # It left between two lines, or is busy: the rest of the status is worth having without it.
        return None
