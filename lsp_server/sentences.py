"""What happened and what to do about it, as sentences a person reads. Pure; knows neither errors nor the editor."""

from __future__ import annotations

_ENDS = (".", "!", "?", "…")


def sentences(*parts: str) -> str:
    """`parts` one behind the other, each a sentence of its own; empty ones are left out.

    The first keeps its first letter as it is, since something may stand before it.
    """
    said = [part.strip().rstrip(";,") for part in parts]
    first, *others = [_ended(part) for part in said if part] or [""]
    return " ".join([first, *(part[0].upper() + part[1:] for part in others)])


def _ended(part: str) -> str:
    return part if part.endswith(_ENDS) else f"{part}."
