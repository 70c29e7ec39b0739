"""codeAction/resolve: the edit of the action a person has picked, for exactly the text it was offered on."""

from __future__ import annotations

from collections.abc import Awaitable

import attrs
from lsprotocol import types

from lsp_server.redeeming import Redeemed, redeem
from lsp_server.session import Session
from lsp_server.tickets import parse_ticket


def code_action_resolve(session: Session, action: types.CodeAction) -> Awaitable[types.CodeAction] | types.CodeAction:
    """The same action with its edit; unchanged when its data is not ours or there is nothing to change.

    Raises JsonRpcContentModified when the text is no longer the one the action was offered on.
    """
    ticket = parse_ticket(action.data)
    redeemed = redeem(session, ticket, action.title, None) if ticket is not None else None
    return action if redeemed is None else _resolve(action, redeemed)


async def _resolve(action: types.CodeAction, redeemed: Redeemed) -> types.CodeAction:
    edit = await redeemed.edit(annotates=True)
    return attrs.evolve(action, edit=edit) if edit is not None else action
