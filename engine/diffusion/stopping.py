"""When a gap is full: end token, line limit, stop text, budget, deadline. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.protocol.lines import cut_at_lines

__all__ = ["Limits", "cut_at_lines", "cut_at_stop_text", "decode_prefix"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a gap besides an end token.

    max_tokens: budget of settled tokens. max_lines: 0 for any number. stop_text: ends the text and is not part of
    it, empty for none. deadline_ms: from the start of the job, 0 for none.
    """

    max_tokens: int
    max_lines: int = 0
    stop_text: str = ""
    deadline_ms: int = 0


def cut_at_stop_text(text: str, stop_text: str) -> str | None:
    """`text` up to `stop_text`, or None when it does not hold it."""
    index = text.find(stop_text) if stop_text else -1
    return text[:index] if index >= 0 else None


def decode_prefix(data: bytes) -> str:
    """The longest leading part of `data` that is valid UTF-8: a token may end inside a character."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data[: error.start].decode("utf-8")
