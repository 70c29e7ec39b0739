"""Documents that nobody can type into, as far as a server can know."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.read_only import is_read_only


@pytest.mark.parametrize("uri", ["git:/w/a.py?ref", "output:tasks", "jdt://contents/a.class", "zipfile:///a.zip::b.py"])
def test_virtual_documents_are_known_by_their_scheme(uri: str) -> None:
    assert is_read_only(uri)


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "file:///never/there.py", "vscode-notebook-cell:/x.ipynb#W0", "vscode-vfs://x/a", ""]
)
def test_what_is_not_known_may_be_written(uri: str) -> None:
    assert not is_read_only(uri)


def test_a_file_is_asked_for_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "a name.py"
    file.write_text("x = 1\n", encoding="utf-8")
    assert not is_read_only(file.as_uri())
    file.chmod(0o444)
    assert is_read_only(file.as_uri())
    assert not is_read_only(tmp_path.as_uri())
