"""workspace/didRenameFiles: a document's name says what may be shown of it, and the old one does not count any more.

Its text is left alone: editors close the old document and open it under the new name.
"""

from __future__ import annotations

from lsprotocol import types

from lsp_server.session import Session


def did_rename_files(session: Session, params: types.RenameFilesParams) -> None:
    """Files or whole folders have new names."""
    for file in params.files:
        session.renamed(file.old_uri)
