"""Parameters of the requests that are ours alone, and of commands: from plain JSON to checked values.

Every function raises JsonRpcInvalidParams, saying what is wrong, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from lsp_server.errors import invalid_params, outdated
from lsp_server.progress import Token
from lsp_server.reading import read_range
from lsp_server.session import Session, Snapshot


def plain(params: object) -> dict[str, Any]:
    """The object of parameters; pygls gives those of a method it does not know as nested named tuples."""
    value = _plain(params)
    if not isinstance(value, dict):
        raise invalid_params("the parameters must be an object")
    return value


def document_of(params: Mapping[str, Any], session: Session) -> Snapshot:
    """The open document that `textDocument` names. Raises JsonRpcContentModified for another version of it."""
    head = params.get("textDocument")
    if not isinstance(head, dict):
        raise invalid_params("textDocument must be an object with a uri")
    return document_at(head.get("uri"), head.get("version"), session)


def document_at(uri: object, version: object, session: Session) -> Snapshot:
    """The open document of a URI. Raises JsonRpcContentModified where it has not the version, if there is one."""
    if not isinstance(uri, str):
        raise invalid_params("uri must be a string")
    if version is not None and not _is_whole_number(version):
        raise invalid_params("version must be a whole number")
    snapshot = session.snapshot(uri)
    if snapshot is None:
        raise invalid_params("the document is not open")
    if version is not None and version != snapshot.document.version:
        raise outdated()
    return snapshot


def range_in(raw: object) -> types.Range:
    """One LSP range, which may end beyond the document but not before it begins."""
    try:
        area = read_range(raw)
    except (ValueError, OverflowError):
        raise invalid_params("a range must be an LSP range") from None
    if area.end < area.start:
        raise invalid_params("a range must not end before it begins")
    return area


def token_of(params: Mapping[str, Any]) -> Token | None:
    """`workDoneToken`, if there is one."""
    token: Token | None = params.get("workDoneToken")
    if token is not None and not (isinstance(token, str) or _is_whole_number(token)):
        raise invalid_params("workDoneToken must be a string or a whole number")
    return token


def instruction_of(params: Mapping[str, Any]) -> str:
    """`instruction`, without white space around it."""
    instruction = params.get("instruction")
    if not isinstance(instruction, str) or not instruction.strip():
        raise invalid_params("instruction must be a text that says what to change")
    return instruction.strip()


def count_of(params: Mapping[str, Any], name: str, most: int) -> int:
    """A whole number from 0 to `most`, 0 where there is none. Lua has one kind of number, so 3.0 is 3."""
    value = params.get(name) or 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is_whole_number(value) or not 0 <= value <= most:
        raise invalid_params(f"{name} must be a whole number from 0 to {most}")
    return int(value)


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: object) -> object:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
