"""initialize, shutdown, exit. What `initialize` says and is told is in `handshake`."""

from __future__ import annotations

from typing import Any

from lsp_server import handshake
from lsp_server.errors import invalid_params
from lsp_server.handshake import Handshake
from lsp_server.session import Session
from lsp_server.wire import StrictProtocol


def initialize(session: Session, protocol: StrictProtocol, params: object) -> dict[str, Any]:
    """`params` are the request's JSON. Raises JsonRpcInvalidParams."""
    try:
        understood = handshake.understand(params)
    except ValueError as fault:
        raise invalid_params(str(fault)) from fault
    begin(session, protocol, understood)
    return handshake.answer(understood)


def begin(session: Session, protocol: StrictProtocol, understood: Handshake) -> None:
    """Take what `initialize` said. Starts nothing: the editor may yet say no."""
    session.begin(understood.capabilities, understood.options, understood.folders, understood.encoding)
    protocol.open(understood.editor_pid)


def shutdown(protocol: StrictProtocol, _params: None) -> None:
    """Every running request is answered as cancelled; the engine is let go when the connection ends."""
    protocol.begin_shutdown()


def leave(protocol: StrictProtocol, _params: None) -> None:
    """`exit`: the transport closes the connection and ends the process."""
    protocol.exit()
