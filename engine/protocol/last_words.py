"""What an engine that could not serve leaves in its log, so that whoever started it can tell a person why.

One line, a mark and a JSON object. It is part of the protocol because both sides must read it alike.
"""

from __future__ import annotations

import json

from engine.protocol.errors import FAILURE_KINDS, EngineError

_MARK = "engine failed: "


def write_last_words(error: EngineError) -> str:
    """The line for `error`, without a line end."""
    words = {"kind": error.kind, "message": error.message, "remedy": error.remedy}
    return _MARK + json.dumps(words)


def read_last_words(line: str) -> EngineError | None:
    """The error a line of a log stands for, None for any other line."""
    _, mark, words = line.partition(_MARK)
    if not mark:
        return None
    try:
        match json.loads(words):
            case {"kind": str() as kind, "message": str() as message, "remedy": str() as remedy}:
                return EngineError(kind if kind in FAILURE_KINDS else "internal", message, remedy)
    except ValueError:
        pass
    return None
