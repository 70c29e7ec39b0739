"""A documented text is the text as it was, with comments and docstrings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.added_prose import with_added_prose
from lsp_server.positions import split_lines

OLD = "def total(items):\n    n = 0\n    return n\n"


@pytest.mark.parametrize(
    ("language", "old", "new", "kept"),
    [
        ("python", OLD, OLD.replace("    n", '    """Add\n\n    up.\n    """\n    n', 1), None),
        ("python", OLD, OLD.replace("    n", '    """Add up."""\n    n', 1), None),
        (
            "python",
            OLD,
            OLD.replace("    n = 0", '    """Add up."""\n    m = 0'),
            OLD.replace("    n", '    """Add up."""\n    n', 1),
        ),
        ("python", OLD, OLD.replace("    n", '    """\n    Add up.\n    """\n    n', 1), None),
        ("python", OLD, OLD.replace("return n", "return m"), OLD),
        ("python", OLD, OLD.replace("    n = 0\n", ""), OLD),
        ("python", OLD, OLD + "\n\ndef more():\n    return 1\n", OLD),
        ("python", OLD.rstrip("\n"), "# Sums.\n" + OLD.rstrip("\n"), None),
        ("typescript", "let x = f();\n", "/**\n * Calls f.\n */\nlet x = f();\n", None),
        ("typescript", "let x = f();\n", "// Calls f.\nlet x = g();\n", "// Calls f.\nlet x = f();\n"),
        ("go", "func F() {}\n", "// F does nothing.\nfunc F() {}\n", None),
        ("unheard-of", "x = 1\n", "# One.\nx = 1\n", None),
    ],
)
def test_only_comments_and_docstrings_are_added(language: str, old: str, new: str, kept: str | None) -> None:
    assert with_added_prose("", old, new, "", language) == (new if kept is None else kept)


@given(st.text("ab#\"'\n ", max_size=30), st.text("ab#\"'\n ", max_size=30))
def test_every_line_of_the_text_stays_in_order(old: str, new: str) -> None:
    lines = iter(split_lines(with_added_prose("", old, new, "", "python")))
    assert all(line in lines for line in split_lines(old))
