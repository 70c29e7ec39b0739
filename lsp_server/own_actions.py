"""Code actions that a person defines in the settings: a title, an instruction, and the languages they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# All of them are offered at once, and every one carries its instruction.
MOST_ACTIONS = 64
LONGEST_TITLE = 120
LONGEST_INSTRUCTION = 4000
MOST_LANGUAGES = 64

_KEYS = frozenset({"title", "instruction", "languages"})


@dataclass(frozen=True, slots=True)
class OwnAction:
    """`languages` are LSP language ids; empty means every language."""

    title: str
    instruction: str
    languages: tuple[str, ...] = ()


def parse_own_actions(raw: object) -> tuple[tuple[OwnAction, ...], str]:
    """(the actions, "") or ((), what is wrong with the first entry that makes no sense)."""
    if not isinstance(raw, list | tuple):
        return (), "must be a list of objects with title and instruction"
    if len(raw) > MOST_ACTIONS:
        return (), f"may have {MOST_ACTIONS} entries, not {len(raw)}"
    actions = []
    for number, entry in enumerate(raw, start=1):
        fault = _fault(entry)
        if fault:
            return (), f"entry {number} {fault}"
        languages = tuple(entry.get("languages") or ())
        actions.append(OwnAction(entry["title"].strip(), entry["instruction"].strip(), languages))
    return tuple(actions), ""


def is_one_line(text: str) -> bool:
    """Whether there is something in `text`, and no line end."""
    return bool(text.strip()) and not any(mark in text for mark in "\n\r")


def _fault(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return "must be an object with title and instruction"
    for key in ("title", "instruction"):
        text = entry.get(key)
        if not isinstance(text, str) or not text.strip():
            return f"must have text as its {key}"
    if not is_one_line(entry["title"].strip()) or len(entry["title"]) > LONGEST_TITLE:
        return f"must have a title of one line, at most {LONGEST_TITLE} characters long"
    if len(entry["instruction"]) > LONGEST_INSTRUCTION:
        return f"must have an instruction of at most {LONGEST_INSTRUCTION} characters"
    languages = entry.get("languages")
    if languages is not None and not _is_list_of_texts(languages):
        return f"must have languages as a list of language ids, at most {MOST_LANGUAGES}, or none"
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    return f"has an unknown key {unknown[0][:LONGEST_TITLE]}" if unknown else ""


def _is_list_of_texts(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) <= MOST_LANGUAGES
        and all(isinstance(item, str) for item in value)
    )
