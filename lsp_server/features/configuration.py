"""workspace/didChangeConfiguration: settings pushed by the editor, or pulled from it where it can be asked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.client import SECTION
from lsp_server.session import Session

logger = logging.getLogger(__name__)


def did_change_configuration(session: Session, params: types.DidChangeConfigurationParams) -> Awaitable[None] | None:
    """What is pushed counts; an empty push is a hint to pull."""
    pushed = _ours(params.settings)
    if pushed is None:
        return pull(session) if session.capabilities.pulls_configuration else None
    _use(session, pushed)
    return None


async def pull(session: Session) -> None:
    """Ask the editor for our section. One that refuses leaves the settings as they are."""
    options = None
    try:
        options = await session.editor.pull_configuration()
    except JsonRpcException as error:
        logger.warning("the editor did not give its configuration (code %s)", error.code)
    session.awaits_settings = False
    if options is None:
        session.wake_engine()
    else:
        _use(session, options)


async def watch(session: Session) -> None:
    """Register for changes. One that refuses is asked again by nobody: its pushes are still heard."""
    try:
        await session.editor.watch_configuration()
    except JsonRpcException as error:
        logger.warning("the editor does not tell of configuration changes (code %s)", error.code)


def _use(session: Session, options: object) -> None:
    session.configure(options)
    session.report_problems()
    session.wake_engine()


def _ours(settings: object) -> object:
    """The section in what was pushed; editors push it alone, or inside an object of all sections."""
    if not isinstance(settings, dict) or not settings:
        return None
    return settings.get(SECTION, settings)
