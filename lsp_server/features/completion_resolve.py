"""completionItem/resolve: what the menu's entry would change, as a small diff.

Fills `documentation` and nothing else. An entry of another version of its document stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs
from lsprotocol import types

from lsp_server.document import Document, for_model
from lsp_server.session import Session

# A diff of a line longer than this shows the neighbourhood of the change only.
SHOWN_CHARS = 120


def completion_resolve(session: Session, item: types.CompletionItem) -> types.CompletionItem:
    """The entry with its diff, where its document is still the one it was made for."""
    data = item.data
    if not isinstance(data, Mapping):
        return item
    uri, start, end, text = data.get("uri"), data.get("start"), data.get("end"), data.get("text")
    document = session.document(uri) if isinstance(uri, str) else None
    if document is None or document.version != data.get("version") or not isinstance(text, str):
        return item
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end <= document.length:
        return item
    lines = diff_of(document, start, end, text)
    markup = types.MarkupContent(types.MarkupKind.PlainText, lines)
    if session.capabilities.reads_markdown:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", lines)), default=0))
        markup = types.MarkupContent(types.MarkupKind.Markdown, f"{fence}diff\n{lines}\n{fence}")
    return attrs.evolve(item, documentation=markup)


def diff_of(document: Document, start: int, end: int, text: str) -> str:
    """The lines that change when `text` takes the place of `[start, end)`, before and after."""
    before = re.split("[\r\n]", document.slice(max(0, start - SHOWN_CHARS), start))[-1]
    after = re.split("[\r\n]", document.slice(end, end + SHOWN_CHARS))[0]
    old = before + document.slice(start, end) + after
    new = f"{before}{text}{after}"
    removed = [f"-{line}" for line in for_model(old).split("\n")] if old.strip() else []
    return "\n".join([*removed, *(f"+{line}" for line in for_model(new).split("\n"))])
