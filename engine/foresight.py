"""Which requests will likely come after an answer, so that their prompts can be encoded while nobody waits. Pure."""

from __future__ import annotations

from dataclasses import replace

from engine.protocol.messages import Fill


def likely_next(request: Fill, text: str) -> tuple[Fill, ...]:
    """The fills to expect when `text` is taken, or typed: on the line behind its first, then behind all of it.

    While the cursor stays in its line the prompt does, so only a new line is news. It is expected indented as the
    text's next line is, or else as the line before it.
    """
    first, _, rest = text.partition("\n")
    likely = [first] if first == text else [first, text]
    expected = []
    for taken in likely:
        before = request.prefix + taken
        like = rest if taken != text else before.rpartition("\n")[2]
        blank = like[: len(like) - len(like.lstrip(" \t"))]
        expected.append(replace(request, prefix=f"{before}\n{blank}", draft=""))
    return tuple(expected)
