"""The engine starts with what already stands before the cursor: the word, or the whole line."""

from __future__ import annotations

from lsp_server.ghost_text.surroundings import Surroundings
from lsp_server.words import word_at_end

_DIGITS = "0123456789"
_SHORTEST_PHRASE = 6


def without_repeated_head(text: str, place: Surroundings) -> str:
    """`text` without a copy of the cursor's line, of the word the cursor ends, or of its `=` at its start.

    A short phrase such as `max(` may well be meant twice and is left alone.
    """
    head = place.head.strip()
    if not head:
        return text
    first = text.lstrip(" \t")
    if len(head) >= _SHORTEST_PHRASE and first.startswith(head) and _ends_apart(head, first):
        rest = first[len(head) :]
        return rest.lstrip(" \t") if place.head[-1].isspace() else rest
    if place.head[-1].isspace() and _assigns(head) and first.startswith("= "):
        return first[1:].lstrip(" \t")
    word = word_at_end(place.head).lstrip(_DIGITS)
    if word and text.startswith(word):
        return text[len(word) :]
    return text.lstrip(" \t") if place.head[-1].isspace() else text


def _ends_apart(head: str, text: str) -> bool:
    """False when the copy would end inside a word of `text` that merely starts the same way."""
    return head[-1].isalnum() or len(text) == len(head) or not (text[len(head)] == head[-1] == "=")


def _assigns(head: str) -> bool:
    """Whether a line up to the cursor ends with an assignment's sign: behind it no second one can stand."""
    return head.endswith("=") and head[-2:-1] not in tuple("=!<>~") and any(mark.isalnum() for mark in head)
