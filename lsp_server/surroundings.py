"""What an engine gets to see of a request's document and of what belongs to it, as prefix and suffix.

The one place that asks for a window: `suggestion` and `revision` know neither budgets nor what is put in front.
"""

from __future__ import annotations

from lsp_server import context
from lsp_server.context import Window
from lsp_server.document import Document
from lsp_server.session import Snapshot


def window_of(snapshot: Snapshot, document: Document, start: int, end: int) -> Window:
    """The text around `[start, end)` of `document`: the snapshot's, or what it would be with a menu entry accepted."""
    settings = snapshot.settings
    return context.window(
        document.text, start, end, prefix_chars=settings.prefix_chars, suffix_chars=settings.suffix_chars
    )
