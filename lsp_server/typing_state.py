"""What the server knows of somebody's typing: offers, pauses, what was accepted, what was taken back."""

from __future__ import annotations

from lsp_server.acceptance import Acceptance
from lsp_server.clock import Clock
from lsp_server.debounce import Debounce
from lsp_server.deletions import Deletions
from lsp_server.document import Document
from lsp_server.gathering import Gathering
from lsp_server.memory import Memory
from lsp_server.undoing import Undoing


class TypingState:
    """One editor's. Everything about a document goes when it is closed; numbers stay."""

    def __init__(self, clock: Clock) -> None:
        self.memory = Memory()
        self.debounce = Debounce(clock)
        self.acceptance = Acceptance()
        self.undoing = Undoing()
        self.deletions = Deletions(clock)
        # What is being made behind the last answer of a document.
        self.gathering: dict[str, Gathering] = {}

    def changed(self, before: Document) -> None:
        """A document moved on from `before`."""
        self.gathering.pop(before.uri, None)
        self.undoing.changed(before)

    def forget(self, uri: str) -> None:
        """A document was closed, or replaced whole."""
        self.memory.forget(uri)
        self.debounce.forget(uri)
        self.undoing.forget(uri)
        self.deletions.forget(uri)
        self.gathering.pop(uri, None)
