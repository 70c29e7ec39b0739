"""What cannot be put on a canvas, and what to do about it: refused before the model is asked. Pure."""

from __future__ import annotations

from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasFacts, CanvasJob
from engine.protocol.errors import EngineError


def require_round_trip(text: str, tokenizer: Tokenizer) -> list[int]:
    """Ids of `text`. Raises EngineError(round_trip) when they do not give back exactly the bytes that went in."""
    ids = tokenizer.encode(text)
    if tokenizer.decode_bytes(ids) != text.encode():
        raise EngineError(
            "round_trip",
            "the model's tokenizer does not give this text back as it was, so nothing of it is changed",
            "select text without unusual characters, or use another model",
        )
    return ids


def require_room(job: CanvasJob, facts: CanvasFacts, max_tokens: int) -> int:
    """How many tokens the job's holes may have together, at most `max_tokens`.

    Raises EngineError: bad_request when there is no hole, window_exceeded when the known text fills the window, an
    island is longer than a canvas, or a hole's text or stated length is longer than what may be written.
    """
    holes = [part for part in job.parts if part.is_hole]
    if not holes:
        raise EngineError("bad_request", "there is no hole to fill", "leave a gap, or select the text to replace")
    known = len(job.known.prefix) + len(job.known.suffix)
    islands = [len(part.ids) for part in job.parts if not part.is_hole]
    if facts.canvas_length and sum(islands) >= facts.canvas_length:
        raise EngineError(
            "window_exceeded",
            f"{sum(islands)} tokens are fixed inside a canvas of {facts.canvas_length}",
            "keep less text between the holes",
        )
    room = facts.window_tokens - known - sum(islands)
    if room < len(holes):
        raise EngineError(
            "window_exceeded",
            f"the text around the gap needs {known + sum(islands)} tokens, "
            f"the model's window holds {facts.window_tokens}",
            "select less text or shorten the instruction",
        )
    budget = min(max_tokens, room)
    wanted = sum(max(part.length, len(part.warm)) for part in holes)
    if wanted > budget:
        raise EngineError(
            "window_exceeded",
            f"the text to denoise holds {wanted} tokens, and {budget} may be written",
            "select less text, or allow a longer answer" if budget == max_tokens else "select less text",
        )
    return budget
