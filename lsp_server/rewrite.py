"""Code actions as data: the prepared instructions, and the tickets that carry a choice to `codeAction/resolve`.

Pure. A ticket names a document version and a range of code-point offsets; it is only good for that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lsp_server.document import Document

KIND_PREFIX = "refactor.rewrite.lacuna"
TICKET_FIELDS = frozenset({"uri", "version", "start", "end", "action"})


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do with a selection. An empty `instruction` fills the selection from its surroundings."""

    name: str
    title: str
    instruction: str

    @property
    def kind(self) -> str:
        """The LSP code action kind."""
        return f"{KIND_PREFIX}.{self.name}"


ACTIONS = (
    Action("fill", "Fill selection from surroundings", ""),
    Action(
        "docstring",
        "Add docstring",
        "Add a concise docstring to every function and class that has none. Change nothing else.",
    ),
    Action(
        "type_hints",
        "Add type hints",
        "Add type hints to all parameters and return values. Keep the behaviour exactly as it is.",
    ),
    Action(
        "simplify",
        "Simplify",
        "Simplify this code. Keep its behaviour and its public names exactly as they are.",
    ),
)


@dataclass(frozen=True, slots=True)
class Ticket:
    """What `codeAction` offered: `action` on the text from `start` to `end` of one document version."""

    uri: str
    version: int
    start: int
    end: int
    action: str


def action_named(name: str) -> Action | None:
    """The action of that name, None when there is none."""
    return next((action for action in ACTIONS if action.name == name), None)


def is_wanted(kind: str, only: tuple[str, ...] | None) -> bool:
    """Whether a client that asked for `only` these kinds wants `kind`; kinds are dotted hierarchies."""
    return only is None or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in only if wanted)


def to_data(ticket: Ticket) -> dict[str, Any]:
    """The ticket as JSON, for `CodeAction.data`."""
    return asdict(ticket)


def parse_ticket(data: object) -> Ticket | None:
    """The ticket in `CodeAction.data`; None when the data is not ours or was damaged on its way."""
    if not isinstance(data, Mapping) or set(data) != TICKET_FIELDS:
        return None
    uri, version, start, end, action = (data[name] for name in ("uri", "version", "start", "end", "action"))
    if not isinstance(uri, str) or not isinstance(action, str) or action_named(action) is None:
        return None
    if not (_is_count(version) and _is_count(start) and _is_count(end)) or not start < end:
        return None
    return Ticket(uri, version, start, end, action)


def is_current(ticket: Ticket, document: Document) -> bool:
    """Whether the ticket was made for exactly this version of the document and lies inside it."""
    return ticket.uri == document.uri and ticket.version == document.version and ticket.end <= len(document.text)


def gap_of(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of a selection that filling it denoises: without the blanks and line ends around what it holds.

    The indentation in front and the line end behind stay known text, so they cannot get lost. In a selection of
    blanks alone the first indentation and the last line end stay.
    """
    selected = text[start:end]
    core = selected.strip()
    if core:
        lead = len(selected) - len(selected.lstrip())
        return start + lead, start + lead + len(core)
    body = selected.removesuffix("\n").removesuffix("\r")
    return start + len(body) - len(body.lstrip(" \t")), start + len(body)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
