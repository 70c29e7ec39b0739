"""Which requests will likely come after an answer, so that their prompts can be encoded while nobody waits. Pure."""

from __future__ import annotations

from dataclasses import replace

from engine.protocol.messages import Fill


def likely_next(request: Fill, text: str) -> tuple[Fill, ...]:
    """The fills to expect when `text` is taken, or typed: on the line behind its first, then behind all of it.

    While the cursor stays in its line the prompt does, so only a new line is news.
    """
    first = text.partition("\n")[0]
    likely = [first] if first == text else [first, text]
    return tuple(replace(request, prefix=f"{request.prefix}{taken}\n", draft="") for taken in likely)
