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
    return pull(session, is_pushed=True) if can_pull and session.workspace.folders else None


def did_change_workspace_folders(
    session: Session, params: types.DidChangeWorkspaceFoldersParams
) -> Awaitable[None] | None:
    """A folder that has gone takes its settings with it; a new one is asked for."""
    added = [folder.uri for folder in params.event.added]
    session.workspace.change_folders(added, (folder.uri for folder in params.event.removed))
    _begin_to_hold(session)
    return pull(session) if added and session.capabilities.pulls_configuration else None


async def pull(session: Session, *, is_pushed: bool = False) -> None:
    """Ask the editor for our section, for all and by folder. One that refuses leaves the settings as they are.

    `is_pushed`: what holds for all has just been said. An answer that comes after a newer question is dropped.
    """
    turn = session.workspace.next_turn()
    folders = session.workspace.folders
    try:
        shared, *own = await session.editor.pull_configuration(folders)
    except JsonRpcException as error:
        logger.warning("the editor did not give its configuration (code %s)", error.code)
        shared, own = None, []
    session.settings_came()
    if turn == session.workspace.turn:
        if shared is not None and not is_pushed:
            session.configure(shared)
        for folder, options in zip(folders, own, strict=False):
            session.workspace.configure_folder(folder, options)
    _begin_to_hold(session)


async def watch(session: Session) -> None:
    """Register for changes. One that refuses is asked again by nobody: its pushes are still heard."""
    try:
        await session.editor.watch_configuration()
    except JsonRpcException as error:
        logger.warning("the editor does not tell of configuration changes (code %s)", error.code)


def _begin_to_hold(session: Session) -> None:
    session.stop_what_is_off()
    session.report_problems()
    session.wake_engine()


def _ours(settings: object) -> object:
    """The section in what was pushed; editors push it alone, or inside an object of all sections.

    None where nothing was: an editor may write an empty object as an empty list. What is no object is a wrong value.
    """
    if settings is None or settings in ({}, []):
        return None
    return settings.get(SECTION, settings) if isinstance(settings, dict) else settings
