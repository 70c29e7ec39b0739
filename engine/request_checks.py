"""What no model can serve: requests refused before anything is computed. Pure."""

from __future__ import annotations

from engine.protocol.errors import EngineError
from engine.protocol.messages import MOST_ALTERNATIVES, MOST_HOLES, Fill, Rewrite

# Twice what a server may be set to send of a document; a model's window holds a hundredth of it.
MOST_CHARACTERS = 4_000_000


def characters_of(request: Fill | Rewrite) -> int:
    """How much text a request holds, in code points."""
    if isinstance(request, Rewrite):
        return sum(map(len, (request.before, request.selection, request.after, request.instruction)))
    rules = request.constraints
    return (
        sum(map(len, (request.prefix, request.suffix, request.draft)))
        + sum(len(hole.island) + len(hole.draft) for hole in request.further)
        + (len(rules.allowed) + len(rules.json_schema) if rules is not None else 0)
    )


def check_request(request: Fill | Rewrite) -> None:
    """Raises EngineError(bad_request)."""
    if (characters := characters_of(request)) > MOST_CHARACTERS:
        raise EngineError(
            "bad_request",
            f"the request holds {characters} characters, more than {MOST_CHARACTERS}",
            "send less text: a part of the file around the gap is enough",
        )
    if request.max_tokens < 1:
        raise EngineError("bad_request", f"max_tokens is {request.max_tokens}", "ask for at least one token")
    if request.deadline_ms < 0:
        raise EngineError("bad_request", f"deadline_ms is {request.deadline_ms}", "use 0 for no deadline")
    if isinstance(request, Fill) and not 1 <= request.alternatives <= MOST_ALTERNATIVES:
        raise EngineError(
            "bad_request", f"alternatives is {request.alternatives}", f"ask for 1 to {MOST_ALTERNATIVES} texts"
        )
    if isinstance(request, Fill) and not 1 <= request.best_of <= MOST_ALTERNATIVES:
        raise EngineError("bad_request", f"best_of is {request.best_of}", f"use 1 to {MOST_ALTERNATIVES}")
    if isinstance(request, Fill) and len(request.further) >= MOST_HOLES:
        holes = len(request.further) + 1
        raise EngineError("bad_request", f"there are {holes} holes", f"fill at most {MOST_HOLES} holes at once")
    if isinstance(request, Rewrite):
        if not request.selection.strip():
            raise EngineError("bad_request", "the selection is empty", "select the code to rewrite")
        if not request.instruction.strip():
            raise EngineError("bad_request", "the instruction is empty", "say what to change")
        if request.seed < 0:
            raise EngineError("bad_request", f"seed is {request.seed}", "use 0 or a number above")
