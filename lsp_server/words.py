"""Words of a document: letters of any script, digits and underscores."""

from __future__ import annotations

import builtins
import keyword
import re

from lsp_server.document import Document

# What is longer is no word that anybody types.
LONGEST_WORD = 200
# Where a word is looked for again, on each side of it: a large file costs no more than a small one.
NEARBY_CHARS = 24_000
_PYTHON_WORDS = frozenset((*dir(builtins), *keyword.kwlist))


def word_at_end(text: str, also: str = "") -> str:
    """The characters of a word, and those of `also`, that `text` ends with.

    Read backwards: an expression would be tried at every place of a long word that does not end the text.
    """
    start = len(text)
    while start and (text[start - 1].isalnum() or text[start - 1] == "_" or text[start - 1] in also):
        start -= 1
    return text[start:]


def word_start(document: Document, offset: int) -> int:
    """Where the word that ends at `offset` begins."""
    return offset - len(word_at_end(document.slice(max(0, offset - LONGEST_WORD), offset)))


def word_end(document: Document, offset: int) -> int:
    """Where the word that `offset` stands in or before ends."""
    word = re.match(r"\w*", document.slice(offset, offset + LONGEST_WORD))
    return offset + len(word.group() if word else "")


def whole_words(document: Document, start: int, end: int) -> tuple[int, int]:
    """A selection without its borders inside words: each word that it parts belongs to it. An empty one stays."""
    if start >= end:
        return start, end
    first = word_start(document, start) if word_end(document, start) > start else start
    last = word_end(document, end) if word_start(document, end) < end else end
    return first, last


def is_inside_word(document: Document, offset: int) -> bool:
    """Whether a character of a word stands on either side of `offset`."""
    return re.fullmatch(r"\w\w", document.slice(max(0, offset - 1), offset + 1)) is not None


def is_known_word(document: Document, start: int, end: int) -> bool:
    """Whether the word at `[start, end)` stands near it once more, as a word of its own, or is one of Python's."""
    word = document.slice(start, end)
    if document.language == "python" and word in _PYTHON_WORDS:
        return True
    alone = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    before = document.slice(max(0, start - NEARBY_CHARS), start)
    return any(alone.search(text) for text in (before, document.slice(end, end + NEARBY_CHARS)))
