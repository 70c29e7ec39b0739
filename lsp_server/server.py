"""The language server put together: which method goes to which feature. No module state, no IO, no engine of its own.

`create_server` is the way in for the command line and for tests; `transport` serves what it returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from lsp_server import __version__
from lsp_server.client import LspEditor
from lsp_server.clock import Clock, SystemClock
from lsp_server.engine_client import Engine
from lsp_server.features import (
    code_action,
    code_action_resolve,
    completion,
    completion_resolve,
    configuration,
    execute_command,
    fill_holes,
    inline_completion,
    lifecycle,
    notebook_sync,
    renames,
    rewrite,
    sync,
    work_done_progress,
)
from lsp_server.handshake import NAME, Handshake
from lsp_server.reading import text_preserving_converter
from lsp_server.remote.selected import SelectedEngine
from lsp_server.session import Session
from lsp_server.wire import StrictProtocol


class LacunaServer(LanguageServer):
    """A pygls server with our protocol and the session of its one editor."""

    protocol: StrictProtocol

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(
            NAME,
            __version__,
            protocol_cls=StrictProtocol,
            converter_factory=text_preserving_converter,
        )
        self.engine = engine
        self.session = Session(engine, LspEditor(self), clock)
        if isinstance(engine, SelectedEngine):
            self.session.choose_engine = engine.select

    def greeted(self, handshake: Handshake) -> None:
        """`initialize` was answered before there was this server: take what it said."""
        lifecycle.begin(self.session, self.protocol, handshake)


def create_server(engine: Engine | Callable[[], Engine], clock: Clock | None = None) -> LacunaServer:
    """A server for one editor. `engine`, or what makes it, is started by the first document, never before."""
    server = LacunaServer(engine() if callable(engine) else engine, clock or SystemClock())
    session, protocol = server.session, server.protocol
    protocol.on_garbled = partial(_garbled, session)
    for method, handler in _handlers(session, protocol).items():
        server.feature(method)(handler)
    return server


def _handlers(session: Session, protocol: StrictProtocol) -> dict[str, Callable[..., Any]]:
    return {
        types.INITIALIZE: partial(lifecycle.initialize, session, protocol),
        types.INITIALIZED: partial(_initialized, session, protocol),
        types.SHUTDOWN: partial(lifecycle.shutdown, protocol),
        types.EXIT: partial(lifecycle.leave, protocol),
        types.TEXT_DOCUMENT_DID_OPEN: partial(sync.did_open, session),
        types.TEXT_DOCUMENT_DID_CHANGE: partial(sync.did_change, session),
        types.TEXT_DOCUMENT_DID_CLOSE: partial(sync.did_close, session),
        types.NOTEBOOK_DOCUMENT_DID_OPEN: partial(notebook_sync.did_open, session),
        types.NOTEBOOK_DOCUMENT_DID_CHANGE: partial(notebook_sync.did_change, session),
        types.NOTEBOOK_DOCUMENT_DID_SAVE: partial(notebook_sync.did_save, session),
        types.NOTEBOOK_DOCUMENT_DID_CLOSE: partial(notebook_sync.did_close, session),
        types.WORKSPACE_DID_RENAME_FILES: partial(renames.did_rename_files, session),
        types.TEXT_DOCUMENT_INLINE_COMPLETION: partial(inline_completion.inline_completion, session),
        types.TEXT_DOCUMENT_COMPLETION: partial(completion.completion, session),
        types.COMPLETION_ITEM_RESOLVE: partial(completion_resolve.completion_resolve, session),
        types.TEXT_DOCUMENT_CODE_ACTION: partial(code_action.code_action, session),
        types.CODE_ACTION_RESOLVE: partial(code_action_resolve.code_action_resolve, session),
        types.WORKSPACE_EXECUTE_COMMAND: partial(execute_command.execute_command, session),
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL: partial(work_done_progress.cancel, session),
        fill_holes.METHOD: partial(fill_holes.fill_holes_of, session),
        rewrite.METHOD: partial(rewrite.rewrite, session),
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: partial(configuration.did_change_configuration, session),
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: partial(configuration.did_change_workspace_folders, session),
    }


def _garbled(session: Session, method: str, params: object) -> None:
    """What could not be understood may have been a change of a document or of a notebook."""
    sync.garbled(session, method, params)
    notebook_sync.garbled(session, method, params)


def _initialized(
    session: Session, protocol: StrictProtocol, _params: types.InitializedParams
) -> Awaitable[None] | None:
    """From here on the server may speak: settings that made no sense, then a question for the real ones."""
    session.report_problems()
    session.status.begin()
    session.wake_engine()
    if session.capabilities.watches_configuration:
        protocol.spawn(configuration.watch(session))
    return configuration.pull(session) if session.capabilities.pulls_configuration else None
