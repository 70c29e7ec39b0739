"""What happened and what to do about it, as sentences a person reads. Pure; knows neither errors nor the editor."""

from __future__ import annotations

_ENDS = (".", "!", "?", "…")
# In the middle of a word: it is a host, a path, a setting.
_NAMES_HAVE = frozenset(".:/\\_@[`")


def sentences(*parts: str) -> str:
    """`parts` one behind the other, each a sentence of its own; empty ones are left out.

    The first keeps its first letter as it is, since something may stand before it.
    """
    said = [part.strip().rstrip(";,") for part in parts]
    first, *others = [_ended(part) for part in said if part] or [""]
    return " ".join([first, *map(capitalised, others)])


def capitalised(text: str) -> str:
    """`text` with a large first letter, unless it begins with a name that has to stay as it is, such as a host's."""
    word = text.split(maxsplit=1)[0].rstrip(".,;:!?…") if text.strip() else ""
    return text if any(mark in _NAMES_HAVE or mark.isdigit() for mark in word) else text[:1].upper() + text[1:]


def _ended(part: str) -> str:
    return part if part.endswith(_ENDS) else f"{part}."
