"""Which documents may leave for a remote engine: those below the folders that the person named. Reads only where
links lead, so that a link inside such a folder opens nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pygls.uris import to_fs_path

from lsp_server.remote.choice import choice_of
from lsp_server.remote.endpoint import leaves_for
from lsp_server.settings import NO_FOLDER, Settings
from lsp_server.uris import parts_of

# Documents that lie in a file, and parts of such documents. All others lie in no folder.
_IN_FILES = frozenset({"file", "vscode-notebook-cell"})


def may_leave(uri: str, settings: Settings) -> bool:
    """Whether the engine that the settings ask for may see the document; with a local one any document stays here."""
    if not settings.engine_url or not settings.engine_allow_folders:
        return True
    if parts_of(uri).scheme not in _IN_FILES:
        return False
    parts = urlsplit(uri)
    path = _real(to_fs_path(urlunsplit(("file", parts.netloc, parts.path, "", ""))))
    folders = (_real(folder) for folder in settings.engine_allow_folders)
    return path is not None and any(folder is not None and path.is_relative_to(folder) for folder in folders)


def leaves_to(settings: Settings) -> str:
    """The host that documents are sent to; empty where none leaves this machine."""
    return "" if settings.engine_allow_folders == NO_FOLDER else leaves_for(choice_of(settings))


def notice_of_leaving(host: str, settings: Settings) -> str:
    """What a person is told once, before the first document is sent to `host`."""
    if settings.engine_allow_folders:
        which = f"documents in {', '.join(settings.engine_allow_folders)} are"
        more = "No others are (`engine.allowFolders`)."
    else:
        which, more = "what you edit is", "`engine.allowFolders` keeps that to folders of your choice."
    return f"Lacuna: {which} sent to {host}, as `engine.url` says. {more}"


def _real(path: str | None) -> Path | None:
    """An absolute path without links in it; None for what is none."""
    if not path:
        return None
    try:
        given = Path(path).expanduser()
        return Path(os.path.normcase(given.resolve())) if given.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None
