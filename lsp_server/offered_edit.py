"""Replacements as a WorkspaceEdit of exactly one document version, annotated where the editor honours it.

One edit is one undo step. The editor may show an annotated one hunk by hunk and let the person leave some out.
"""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from lsp_server.edits import TextReplacement
from lsp_server.ranges import range_of
from lsp_server.session import Snapshot

_ANNOTATION = "lacuna"
MADE_BY_MODEL = "Written by a language model. Look at each change before you keep it."


def offered_edit(
    snapshot: Snapshot, replacements: Sequence[TextReplacement], title: str, note: str = "", *, annotates: bool = True
) -> types.WorkspaceEdit:
    """The edit; with a `note` it asks to be confirmed whatever the settings say.

    A client without versioned edits gets the same ones unversioned: it has no other way to apply any.
    """
    document = snapshot.document
    plain = [types.TextEdit(range_of(snapshot, item.start, item.end), item.text) for item in replacements]
    if not snapshot.capabilities.versioned_edits:
        return types.WorkspaceEdit(changes={document.uri: plain})
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    if not (annotates and snapshot.capabilities.annotates_edits):
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [*plain])])
    annotation = types.ChangeAnnotation(
        label=f"Lacuna: {title}",
        needs_confirmation=bool(note) or snapshot.settings.rewrite_confirm,
        description=note or MADE_BY_MODEL,
    )
    edits = [types.AnnotatedTextEdit(_ANNOTATION, edit.range, edit.new_text) for edit in plain]
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(identifier, [*edits])],
        change_annotations={_ANNOTATION: annotation},
    )
