"""How many suggestions were shown and how many of them accepted, counted by tickets without a word of any text.

Ghost text and menu entries carry `ACCEPTED` with their ticket; the editor runs it once the text is in. The counts are
for `lacuna.status` and leave the machine never.
"""

from __future__ import annotations

from collections import OrderedDict
from uuid import uuid4

from lsprotocol import types

from lsp_server.commands import ACCEPTED

TITLE = "Lacuna: suggestion accepted"
TICKETS_KEPT = 256


class Acceptance:
    """The tally of one editor's session."""

    def __init__(self) -> None:
        self.shown = 0
        self.accepted = 0
        self.recalled = 0
        self._open: OrderedDict[str, str] = OrderedDict()

    def offered(self, uri: str) -> str:
        """Count a suggestion that is shown for the first time in `uri`; its ticket."""
        self.shown += 1
        ticket = uuid4().hex
        self._open[ticket] = uri
        if len(self._open) > TICKETS_KEPT:
            self._open.popitem(last=False)
        return ticket

    def accept(self, ticket: str) -> str | None:
        """Count the suggestion as accepted, once; its document, None for a ticket that is not open."""
        uri = self._open.pop(ticket, None)
        if uri is not None:
            self.accepted += 1
        return uri

    def counts(self) -> dict[str, int]:
        """Numbers for the status: shown, accepted, and answers that needed no engine."""
        return {"shown": self.shown, "accepted": self.accepted, "recalled": self.recalled}


def report_of(ticket: str) -> types.Command:
    """What an item carries so that the editor reports that its text was put in."""
    return types.Command(TITLE, ACCEPTED, arguments=[ticket])
