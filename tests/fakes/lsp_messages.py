"""JSON-RPC messages and frames, made and read without pygls."""

from __future__ import annotations

import asyncio
import json
from typing import Any


def frame(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def note(method: str, params: Any = None) -> dict[str, Any]:
    """A notification message."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def place(uri: str, line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def area(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def change(version: int, text: str, span: dict[str, Any] | None = None, uri: str = "file:///w/a.py") -> dict[str, Any]:
    """A didChange message."""
    event = {"text": text} if span is None else {"text": text, "range": span}
    return note(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": [event]},
    )


async def read_frame(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message, None at the end of the stream. Raises ValueError for a frame that is not one."""
    length = 0
    while (line := await stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("ascii").partition(":")
        if name.lower() == "content-length":
            length = int(value)
    if not length:
        return None
    message = json.loads(await stream.readexactly(length))
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ValueError(f"not a JSON-RPC message: {message!r}")
    return message
