"""The parts of URIs, and of what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.uris import Uri, parts_of


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("file:///w/a%20b.py", Uri("file", "", "/w/a b.py")),
        ("file:///c%3A/w\\a.py", Uri("file", "", "/c:/w/a.py")),
        ("vscode-remote://SSH-remote%2Bhost/w/a.py", Uri("vscode-remote", "ssh-remote+host", "/w/a.py")),
        ("untitled:Untitled-1", Uri("untitled", "", "Untitled-1")),
        ("vscode-notebook-cell:/w/x.ipynb#W0", Uri("vscode-notebook-cell", "", "/w/x.ipynb")),
        ("file://[a/b.py", Uri("", "", "file://[a/b.py")),
        ("", Uri("", "", "")),
    ],
)
def test_a_uri_is_read(uri: str, parts: Uri) -> None:
    assert parts_of(uri) == parts


@given(st.text())
def test_no_text_is_too_odd(uri: str) -> None:
    assert isinstance(parts_of(uri), Uri)
