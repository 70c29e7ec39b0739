"""What the connected editor can do, resolved once into booleans.

The only file that walks the client's nested optional capabilities, as JSON: see `handshake`. What has another shape
than the specification says counts as absent. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Values of the specification: `CodeActionTag.LLMGenerated`, `InsertTextMode.asIs`, `MarkupKind.Markdown`.
LLM_GENERATED = 1
AS_IS = 1
MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`position_encodings` is None when the client said nothing, in its order of preference otherwise."""

    position_encodings: tuple[str, ...] | None = None
    resolves_edits: bool = False
    applies_edits: bool = False
    tags_actions: bool = False
    versioned_edits: bool = False
    disables_actions: bool = False
    annotates_edits: bool = False
    shows_progress: bool = False
    text_as_is: bool = False
    inserts_or_replaces: bool = False
    menu_defaults: frozenset[str] = frozenset()
    reads_markdown: bool = False
    pulls_configuration: bool = False
    watches_configuration: bool = False
    wants_drafts: bool = False
    wants_status: bool = False

    @property
    def shows_loading(self) -> bool:
        """Whether loading belongs into the editor's own progress: one that shows `lacuna/status` would say it twice."""
        return self.shows_progress and not self.wants_status


def resolve(client: Mapping[str, Any]) -> Capabilities:
    """Booleans from the capabilities of an `initialize` request."""
    item = _at(client, "textDocument", "completion", "completionItem")
    action = _at(client, "textDocument", "codeAction")
    return Capabilities(
        position_encodings=_position_encodings(client),
        resolves_edits=_resolves_edits(action),
        applies_edits=bool(_at(client, "workspace", "applyEdit")),
        tags_actions=LLM_GENERATED in _list(action, "tagSupport", "valueSet"),
        versioned_edits=bool(_at(client, "workspace", "workspaceEdit", "documentChanges")),
        disables_actions=bool(_at(action, "disabledSupport")),
        annotates_edits=_annotates_edits(client),
        shows_progress=bool(_at(client, "window", "workDoneProgress")),
        text_as_is=AS_IS in _list(item, "insertTextModeSupport", "valueSet"),
        inserts_or_replaces=bool(_at(item, "insertReplaceSupport")),
        menu_defaults=frozenset(_strings(client, "textDocument", "completion", "completionList", "itemDefaults")),
        reads_markdown=MARKDOWN in _list(item, "documentationFormat"),
        pulls_configuration=bool(_at(client, "workspace", "configuration")),
        watches_configuration=bool(_at(client, "workspace", "didChangeConfiguration", "dynamicRegistration")),
        # Anything else in there belongs to other servers.
        wants_drafts=_at(client, "experimental", "lacuna", "drafts") is True,
        wants_status=_at(client, "experimental", "lacuna", "status") is True,
    )


def _at(node: object, *names: str) -> Any:
    """The value at a path of optional members, None where the path ends early."""
    for name in names:
        if not isinstance(node, Mapping):
            return None
        node = node.get(name)
    return node


def _list(node: object, *names: str) -> list[Any]:
    value = _at(node, *names)
    return value if isinstance(value, list) else []


def _strings(node: object, *names: str) -> tuple[str, ...]:
    return tuple(value for value in _list(node, *names) if isinstance(value, str))


def _position_encodings(client: Mapping[str, Any]) -> tuple[str, ...] | None:
    if not isinstance(_at(client, "general", "positionEncodings"), list):
        return None
    return _strings(client, "general", "positionEncodings")


def _resolves_edits(action: object) -> bool:
    return bool(_at(action, "dataSupport")) and "edit" in _list(action, "resolveSupport", "properties")


def _annotates_edits(client: Mapping[str, Any]) -> bool:
    """Annotations stand in versioned edits only, and a client may honour them elsewhere than in a code action's."""
    edits = _at(client, "workspace", "workspaceEdit")
    if not _at(edits, "documentChanges") or _at(edits, "changeAnnotationSupport") is None:
        return False
    return bool(_at(client, "textDocument", "codeAction", "honorsChangeAnnotations"))
