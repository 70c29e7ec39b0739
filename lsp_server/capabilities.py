"""What the connected editor can do, resolved once into booleans.

The only file that walks the client's nested optional capabilities. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsprotocol import types


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


def resolve(client: types.ClientCapabilities) -> Capabilities:
    """Booleans from the capabilities of an `initialize` request."""
    return Capabilities(
        position_encodings=_position_encodings(client),
        resolves_edits=_resolves_edits(client),
        applies_edits=bool(_at(client, "workspace", "apply_edit")),
        tags_actions=types.CodeActionTag.LlmGenerated
        in (_at(client, "text_document", "code_action", "tag_support", "value_set") or ()),
        versioned_edits=bool(_at(client, "workspace", "workspace_edit", "document_changes")),
        disables_actions=bool(_at(client, "text_document", "code_action", "disabled_support")),
        annotates_edits=_annotates_edits(client),
        shows_progress=bool(_at(client, "window", "work_done_progress")),
        text_as_is=types.InsertTextMode.AsIs
        in (
            _at(client, "text_document", "completion", "completion_item", "insert_text_mode_support", "value_set") or ()
        ),
        inserts_or_replaces=bool(
            _at(client, "text_document", "completion", "completion_item", "insert_replace_support")
        ),
        menu_defaults=frozenset(_at(client, "text_document", "completion", "completion_list", "item_defaults") or ()),
        reads_markdown=types.MarkupKind.Markdown
        in (_at(client, "text_document", "completion", "completion_item", "documentation_format") or ()),
        pulls_configuration=bool(_at(client, "workspace", "configuration")),
        watches_configuration=bool(_at(client, "workspace", "did_change_configuration", "dynamic_registration")),
        wants_drafts=_wants_drafts(client.experimental),
    )


def _at(node: object, *names: str) -> Any:
    """The value at a path of optional attributes, None where the path ends early."""
    for name in names:
        if node is None:
            return None
        node = getattr(node, name)
    return node


def _position_encodings(client: types.ClientCapabilities) -> tuple[str, ...] | None:
    stated = _at(client, "general", "position_encodings")
    if stated is None:
        return None
    return tuple(str(getattr(encoding, "value", encoding)) for encoding in stated)


def _resolves_edits(client: types.ClientCapabilities) -> bool:
    properties = _at(client, "text_document", "code_action", "resolve_support", "properties") or ()
    return bool(_at(client, "text_document", "code_action", "data_support")) and "edit" in properties


def _annotates_edits(client: types.ClientCapabilities) -> bool:
    """Annotations stand in versioned edits only, and a client may honour them elsewhere than in a code action's."""
    edits = _at(client, "workspace", "workspace_edit")
    if edits is None or not edits.document_changes or edits.change_annotation_support is None:
        return False
    return bool(_at(client, "text_document", "code_action", "honors_change_annotations"))


def _wants_drafts(experimental: object) -> bool:
    """`experimental: {"lacuna": {"drafts": true}}`: anything else there belongs to other servers."""
    ours = experimental.get("lacuna") if isinstance(experimental, dict) else None
    return isinstance(ours, dict) and ours.get("drafts") is True
