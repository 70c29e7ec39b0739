"""`initialize`, from its JSON to the JSON of the answer: what the editor can do, and what this server can.

Plain JSON on both sides, because this is what an editor waits for: the typed messages of the protocol (lsprotocol) take
longer to import than everything else together, and nothing here needs them. Pure. Must import only what is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lsp_server import __version__
from lsp_server.actions import KINDS
from lsp_server.capabilities import Capabilities, resolve
from lsp_server.commands import COMMANDS
from lsp_server.positions import PositionEncoding, negotiate
from lsp_server.settings import parse

NAME = "lacuna"
METHOD = "initialize"

# The largest number that every system can be asked about: it is a signed one of 32 bits.
_HIGHEST_PID = 2**31 - 1

# `TextDocumentSyncKind.Incremental`
_INCREMENTAL = 2


@dataclass(frozen=True, slots=True)
class Handshake:
    """What `initialize` said. `options` are its initializationOptions as they came, `folders` URIs."""

    capabilities: Capabilities
    encoding: PositionEncoding
    options: object
    folders: tuple[str, ...]
    editor_pid: int | None


def understand(params: object) -> Handshake:
    """What the parameters of `initialize` say. Raises ValueError, saying what is wrong with them."""
    if not isinstance(params, Mapping) or not isinstance(params.get("capabilities"), Mapping):
        raise ValueError("initialize needs an object with capabilities")
    capabilities = resolve(params["capabilities"])
    options = params.get("initializationOptions")
    return Handshake(
        capabilities, _encoding(capabilities, options), options, _folders(params), _pid(params.get("processId"))
    )


def answer(handshake: Handshake) -> dict[str, Any]:
    """The InitializeResult."""
    return {
        "capabilities": {
            "positionEncoding": handshake.encoding.value,
            "textDocumentSync": {"openClose": True, "change": _INCREMENTAL},
            "completionProvider": {"resolveProvider": True},
            "inlineCompletionProvider": {},
            "codeActionProvider": {"codeActionKinds": list(KINDS), "resolveProvider": True},
            "executeCommandProvider": {"commands": list(COMMANDS), "workDoneProgress": True},
            "workspace": {
                # Folders that come and go, and new names of files and folders, are told.
                "workspaceFolders": {"supported": True, "changeNotifications": True},
                "fileOperations": {"didRename": {"filters": [{"pattern": {"glob": "**/*"}}]}},
            },
            # Every notebook of every kind, with all its cells: Markdown cells say what the code is about.
            "notebookDocumentSync": {"notebookSelector": [{"notebook": "*"}]},
        },
        "serverInfo": {"name": NAME, "version": __version__},
    }


def _encoding(capabilities: Capabilities, options: object) -> PositionEncoding:
    """Settled here, once and for all: settings that come later cannot move it."""
    wanted = parse(options)[0].position_encoding
    forced = None if wanted == "auto" else PositionEncoding(wanted)
    return negotiate(capabilities.position_encodings, forced=forced)


def _folders(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The URIs of the workspace's folders; an editor that knows only one calls it the root."""
    folders = params.get("workspaceFolders")
    if isinstance(folders, list) and folders:
        return tuple(_uri(folder) for folder in folders)
    root = params.get("rootUri")
    return (root,) if isinstance(root, str) and root else ()


def _uri(folder: object) -> str:
    uri = folder.get("uri") if isinstance(folder, Mapping) else None
    if not isinstance(uri, str):
        raise ValueError("every workspace folder needs a uri")
    return uri


def _pid(stated: object) -> int | None:
    if stated is None:
        return None
    if not isinstance(stated, int) or isinstance(stated, bool) or abs(stated) > _HIGHEST_PID:
        raise ValueError("processId is neither a process's number nor null")
    return stated
