"""How a constraint fails: `unsatisfied`."""

from __future__ import annotations

from engine.protocol.errors import EngineError


def unsatisfied(message: str, remedy: str) -> EngineError:
    """The failure of a text that could not be made to obey."""
    return EngineError("unsatisfied", message, remedy)
