"""workspace/didChangeConfiguration, didChangeWorkspaceFolders: settings pushed by the editor, or pulled from it.

Where it can be asked it is asked once for all and once for each folder, in one request.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.client import SECTION
from lsp_server.session import Session

logger = logging.getLogger(__name__)


def did_change_configuration(session: Session, params: types.DidChangeConfigurationParams) -> Awaitable[None] | None:
    """What is pushed counts, for all; an empty push is a hint to pull. A folder's own settings can only be pulled."""
    pushed = _ours(params.settings)
    can_pull = session.capabilities.pulls_configuration
    if pushed is None:
        return pull(session) if can_pull else None
    session.configure(pushed)
    _begin_to_hold(session)
    return _pull_folders(session) if can_pull and session.workspace.folders else None


def did_change_workspace_folders(
    session: Session, params: types.DidChangeWorkspaceFoldersParams
) -> Awaitable[None] | None:
    """A folder that has gone takes its settings with it; a new one is asked for."""
    added = [folder.uri for folder in params.event.added]
    session.workspace.change_folders(added, (folder.uri for folder in params.event.removed))
    _begin_to_hold(session)
    return _pull_folders(session) if added and session.capabilities.pulls_configuration else None


async def pull(session: Session) -> None:
    """Ask the editor for our section. One that refuses leaves the settings as they are."""
    shared, own = await _asked(session)
    session.awaits_settings = False
    if shared is not None:
        session.configure(shared)
    _use_folders(session, own)


async def watch(session: Session) -> None:
    """Register for changes. One that refuses is asked again by nobody: its pushes are still heard."""
    try:
        await session.editor.watch_configuration()
    except JsonRpcException as error:
        logger.warning("the editor does not tell of configuration changes (code %s)", error.code)


async def _pull_folders(session: Session) -> None:
    """As `pull`, for what a push cannot say: the settings of each folder."""
    _, own = await _asked(session)
    _use_folders(session, own)


async def _asked(session: Session) -> tuple[object, dict[str, object]]:
    """(options for all, options by folder); nothing from an editor that refuses."""
    folders = session.workspace.folders
    try:
        shared, *own = await session.editor.pull_configuration(folders)
    except JsonRpcException as error:
        logger.warning("the editor did not give its configuration (code %s)", error.code)
        return None, {}
    return shared, dict(zip(folders, own, strict=True))


def _use_folders(session: Session, own: dict[str, object]) -> None:
    for folder, options in own.items():
        session.workspace.configure_folder(folder, options)
    _begin_to_hold(session)


def _begin_to_hold(session: Session) -> None:
    session.stop_what_is_off()
    session.report_problems()
    session.wake_engine()


def _ours(settings: object) -> object:
    """The section in what was pushed; editors push it alone, or inside an object of all sections."""
    if not isinstance(settings, dict) or not settings:
        return None
    return settings.get(SECTION, settings)
