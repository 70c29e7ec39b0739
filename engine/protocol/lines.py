"""What `Fill.max_lines` means, for every engine that cuts a text by it. Pure."""

from __future__ import annotations


def cut_at_lines(text: str, max_lines: int) -> str | None:
    """`text` cut behind its `max_lines`-th line that holds something, or None while it is still shorter.

    Blank lines before the first text do not count: a gap may open with a line end.
    """
    if max_lines <= 0:
        return None
    seen = 0
    start = 0
    while (end := text.find("\n", start)) >= 0:
        if text[start:end].strip():
            seen += 1
            if seen == max_lines:
                return text[:end]
        start = end + 1
    return None
