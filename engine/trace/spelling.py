"""What a token writes, for who looks on."""

from __future__ import annotations

from engine.models.base import Tokenizer


def text_alone(tokenizer: Tokenizer, token: int) -> str:
    """What a token writes when it stands by itself; a word for one that writes nothing."""
    return tokenizer.decode_bytes([token]).decode("utf-8", errors="replace") or "end of text"
