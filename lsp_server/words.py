"""Words of a document: letters of any script, digits and underscores."""

from __future__ import annotations

import re

from lsp_server.document import Document

# What is longer is no word that anybody types.
LONGEST_WORD = 200


def word_start(document: Document, offset: int) -> int:
    """Where the word that ends at `offset` begins."""
    before = document.slice(max(0, offset - LONGEST_WORD), offset)
    word = re.search(r"\w*\Z", before)
    return offset - len(word.group() if word else "")


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
