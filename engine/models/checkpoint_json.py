"""The JSON files of a checkpoint: read strictly by who loads it, leniently by who only looks. Imports no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.protocol.errors import EngineError


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises EngineError: model_missing, model_corrupt."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EngineError(
            "model_missing", f"{path.parent} has no {path.name}", "name the folder that holds the whole checkpoint"
        ) from None
    except (OSError, ValueError, RecursionError) as fault:
        raise damaged(path, str(fault)) from fault
    if not isinstance(found, dict):
        raise damaged(path, "it holds no object")
    return found


def object_or_empty(path: Path) -> dict[str, Any]:
    """As `read_object`; a file that cannot be read counts as empty, since loading says what is wrong with it."""
    try:
        return read_object(path)
    except EngineError:
        return {}


def damaged(path: Path, what: str) -> EngineError:
    """The error for a file of a checkpoint that is not what it should be."""
    return EngineError("model_corrupt", f"{path} cannot be used: {what}", "fetch the checkpoint again")
