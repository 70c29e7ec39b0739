"""The editor's first message, when it is the `initialize` it should be: understood and answered on its own.

Anything else, however odd, is left to the server (`wire`), whose answer to a proper `initialize` is the same. Pure.
Must import only what is quick.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lsp_server import handshake
from lsp_server.frames import to_frame
from lsp_server.handshake import Handshake

_VERSION = "2.0"


@dataclass(frozen=True, slots=True)
class Greeting:
    """What `initialize` said, and the frame that answers it."""

    handshake: Handshake
    reply: bytes


def greet(body: bytes) -> Greeting | None:
    """The answer to a frame that holds a well-formed `initialize` request, None for every other."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != _VERSION or message.get("method") != handshake.METHOD:
        return None
    message_id = message.get("id")
    if not isinstance(message_id, str | int) or isinstance(message_id, bool):
        return None
    try:
        understood = handshake.understand(message.get("params"))
        result = handshake.answer(understood)
        reply = to_frame(json.dumps({"jsonrpc": _VERSION, "id": message_id, "result": result}))
    except Exception:  # noqa: BLE001 (whatever it is, the server says it as this id's one answer, and lives on)
        return None
    return Greeting(understood, reply)
