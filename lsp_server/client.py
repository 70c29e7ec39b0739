"""What the session may say to the editor, over pygls. Sends; never decides.

`Editor` is the seam: features and the session see only it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from lsprotocol import types
from pygls.lsp.server import LanguageServer

SECTION = "lacuna"
DRAFT = "lacuna/draft"
STATUS = "lacuna/status"


class Editor(Protocol):
    """The editor, as the session sees it."""

    def log(self, message: str) -> None:
        """A line in the editor's log, at level Info."""
        ...

    def warn(self, message: str) -> None:
        """A line in the editor's log, at level Warning."""
        ...

    def show(self, message: str) -> None:
        """A message to the person, at level Info."""
        ...

    def alert(self, message: str) -> None:
        """A message to the person, at level Warning."""
        ...

    def send_draft(self, draft: dict[str, Any]) -> None:
        """A `lacuna/draft` notification."""
        ...

    def send_status(self, status: dict[str, Any]) -> None:
        """A `lacuna/status` notification."""
        ...

    async def create_progress(self, token: str) -> None:
        """Ask for a place to report progress under `token`. Raises JsonRpcException when it refuses."""
        ...

    async def apply_edit(self, title: str, edit: types.WorkspaceEdit) -> bool:
        """Have the editor apply an edit. Whether it did. Raises JsonRpcException when it cannot at all."""
        ...

    def send_progress(self, token: int | str, value: object) -> None:
        """A `$/progress` notification; `value` is one of LSP's WorkDoneProgress types."""
        ...

    async def pull_configuration(self, folders: Sequence[str]) -> list[object]:
        """The editor's `lacuna` section for all, then for each folder; None where it has none.

        Raises JsonRpcException when it refuses.
        """
        ...

    async def watch_configuration(self) -> None:
        """Ask to be told of changes of the configuration. Raises JsonRpcException when it refuses."""
        ...


class LspEditor:
    """The editor at the other end of a pygls server."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    def log(self, message: str) -> None:
        """See `Editor.log`."""
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    def warn(self, message: str) -> None:
        """See `Editor.warn`."""
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, message))

    def show(self, message: str) -> None:
        """See `Editor.show`."""
        self._server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))

    def alert(self, message: str) -> None:
        """See `Editor.alert`."""
        self._server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))

    def send_draft(self, draft: dict[str, Any]) -> None:
        """See `Editor.send_draft`."""
        self._server.protocol.notify(DRAFT, draft)

    def send_status(self, status: dict[str, Any]) -> None:
        """See `Editor.send_status`."""
        self._server.protocol.notify(STATUS, status)

    async def create_progress(self, token: str) -> None:
        """See `Editor.create_progress`."""
        await self._server.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))

    async def apply_edit(self, title: str, edit: types.WorkspaceEdit) -> bool:
        """See `Editor.apply_edit`."""
        params = types.ApplyWorkspaceEditParams(edit, label=f"Lacuna: {title}")
        return (await self._server.workspace_apply_edit_async(params)).applied

    def send_progress(self, token: int | str, value: object) -> None:
        """See `Editor.send_progress`."""
        self._server.progress(types.ProgressParams(token, value))

    async def pull_configuration(self, folders: Sequence[str]) -> list[object]:
        """See `Editor.pull_configuration`."""
        items = [types.ConfigurationItem(section=SECTION)]
        items += [types.ConfigurationItem(section=SECTION, scope_uri=folder) for folder in folders]
        answers = await self._server.workspace_configuration_async(types.ConfigurationParams(items))
        given: list[object] = list(answers) if isinstance(answers, list | tuple) else []
        return (given + [None] * len(items))[: len(items)]

    async def watch_configuration(self) -> None:
        """See `Editor.watch_configuration`."""
        registration = types.Registration(
            id="lacuna-configuration",
            method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            register_options=types.DidChangeConfigurationRegistrationOptions(section=SECTION),
        )
        await self._server.client_register_capability_async(types.RegistrationParams([registration]))
