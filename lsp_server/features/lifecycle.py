"""initialize, initialized, shutdown, exit: what the server can do is said here."""

from __future__ import annotations

from lsprotocol import types

from lsp_server import __version__, capabilities
from lsp_server.session import Session
from lsp_server.wire import StrictProtocol

NAME = "lacuna"


def initialize(
    session: Session,
    protocol: StrictProtocol,
    action_kinds: tuple[str, ...],
    commands: tuple[str, ...],
    params: types.InitializeParams,
) -> types.InitializeResult:
    """Settle capabilities, encoding and first settings. Starts nothing: the editor may yet say no."""
    session.begin(capabilities.resolve(params.capabilities), params.initialization_options, _folders(params))
    protocol.open(params.process_id)
    return types.InitializeResult(
        capabilities=types.ServerCapabilities(
            position_encoding=session.encoding.value,
            text_document_sync=types.TextDocumentSyncOptions(
                open_close=True, change=types.TextDocumentSyncKind.Incremental
            ),
            completion_provider=types.CompletionOptions(resolve_provider=True),
            inline_completion_provider=types.InlineCompletionOptions(),
            code_action_provider=types.CodeActionOptions(code_action_kinds=list(action_kinds), resolve_provider=True),
            execute_command_provider=types.ExecuteCommandOptions(commands=list(commands), work_done_progress=True),
            workspace=_workspace_options(),
            # Every notebook of every kind, with all its cells: Markdown cells say what the code is about.
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")]
            ),
        ),
        server_info=types.ServerInfo(name=NAME, version=__version__),
    )


def _workspace_options() -> types.WorkspaceOptions:
    """Folders that come and go, and new names of files and folders, are told."""
    everything = types.FileOperationFilter(pattern=types.FileOperationPattern(glob="**/*"))
    return types.WorkspaceOptions(
        workspace_folders=types.WorkspaceFoldersServerCapabilities(supported=True, change_notifications=True),
        file_operations=types.FileOperationOptions(did_rename=types.FileOperationRegistrationOptions([everything])),
    )


def _folders(params: types.InitializeParams) -> list[str]:
    """The URIs of the workspace's folders; an editor that knows only one calls it the root."""
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    return [params.root_uri] if params.root_uri else []


def shutdown(protocol: StrictProtocol, _params: None) -> None:
    """Every running request is answered as cancelled; the engine is let go when the connection ends."""
    protocol.begin_shutdown()


def leave(protocol: StrictProtocol, _params: None) -> None:
    """`exit`: the transport closes the connection and ends the process."""
    protocol.exit()
