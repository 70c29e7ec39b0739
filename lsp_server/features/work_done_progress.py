"""window/workDoneProgress/cancel: the person pressed the button of a progress bar; the job behind it ends."""

from __future__ import annotations

from lsprotocol import types

from lsp_server.session import Session


def cancel(session: Session, params: types.WorkDoneProgressCancelParams) -> None:
    """The request behind the token is answered as cancelled; a token that is done with is ignored."""
    session.progress.cancel(params.token)
