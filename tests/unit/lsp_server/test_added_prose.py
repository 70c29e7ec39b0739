"""A documented text is the text as it was, with comments and docstrings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.added_prose import with_added_prose
from lsp_server.positions import split_lines

OLD = "def total(items):\n    n = 0\n    return n\n"
DOCUMENTED = 'def total(items):\n    """Add up."""\n    n = 0\n    return n\n'
QUOTED = 's = """\ndef f(a):\n    return a\n"""\n'
MULTILINE = "def long(\n    a={1: 2},\n    b='):',\n):  # two\n    pass\n"


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
        ("python", OLD, "# Sums.\n" + OLD, OLD),
        ("python", "@cache\n" + OLD, '"""Sums."""\n@cache\n' + OLD, "@cache\n" + OLD),
        ("python", OLD, OLD.replace("    return", '    """Gives."""\n    return'), OLD),
        ("python", "x = 1\n", "# x = 1\nx = 1\n", "x = 1\n"),
        ("python", DOCUMENTED, DOCUMENTED.replace("    n", '    """More."""\n    n', 1), DOCUMENTED),
        ("python", QUOTED, QUOTED.replace("    return", "    '''Doc.'''\n    return"), QUOTED),
        ("python", "def f(x): return x\n", 'def f(x): return x\n    """Doc."""\n', "def f(x): return x\n"),
        ("python", "class A:\n\n    x = 1\n", 'class A:\n    """One."""\n\n    x = 1\n', None),
        ("python", OLD, OLD.replace("    n = 0", '    """n = 0"""\n    n = 0'), OLD),
        ("python", MULTILINE, MULTILINE.replace("    pass", '    """Doc."""\n    pass'), None),
        ("typescript", "f();\n", "// Calls f.\nf();\n", "f();\n"),
        ("typescript", "// One.\nlet x = 1;\n", "// One.\n// Says x.\nlet x = 1;\n", "// One.\nlet x = 1;\n"),
        ("typescript", "let x = 1;\n", "// let x = 1;\nlet x = 1;\n", "let x = 1;\n"),
        ("rust", "#[test]\nfn f() {}\n", "/// Tests.\n#[test]\nfn f() {}\n", None),
        ("rust", "#[test]\nfn f() {}\n", "#[test]\n/// Tests.\nfn f() {}\n", "#[test]\nfn f() {}\n"),
        ("kotlin", "fun f() = g()\n", "/** Calls g. */\nfun f() = g()\n", None),
        ("sql", "SELECT 1;\n", "-- Selects one.\nSELECT 1;\n", None),
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


def test_a_selected_body_is_documented_by_the_head_in_front_of_it() -> None:
    body = "    return 1\n"
    documented = '    """One."""\n' + body
    assert with_added_prose("def f():\n", body, documented, "", "python") == documented
    assert with_added_prose("def f():\n    g()\n", body, documented, "", "python") == body
    assert with_added_prose('s = """\ndef f():\n', body, documented, '"""\n', "python") == body
    assert with_added_prose("", "def f():\n", 'def f():\n    """One."""\n', body, "python").count("One") == 1
