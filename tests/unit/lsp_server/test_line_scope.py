"""How many lines a place asks for (cases T-CTX-4)."""

from __future__ import annotations

import pytest

from lsp_server.line_scope import is_single_line

MANY = [
    ("python", "def mean(xs):\n    ¦"),
    ("python", "def mean(xs):¦"),
    ("python", "def mean¦"),
    ("python", "x = 1\n¦\ny = 2\n"),
    ("python", "ret¦"),
    ("python", "if a: ¦"),
    ("python", "x = {¦"),
    ("python", "rows = [\n    1,\n    ¦\n]\n"),
    ("python", '"""Words\nand ¦'),
    ("javascript", "function f() {¦"),
    ("javascript", "a(); ¦"),
    ("javascript", "const f = (x) => ¦"),
    ("typescript", "class A {\n  ¦\n}\n"),
    ("go", "func F() int {\n\t¦\n}\n"),
    ("rust", "fn main() { ¦"),
    ("ruby", "def area¦"),
    ("lua", "if x then ¦"),
    ("rust", "Some(x) => ¦"),
    ("yaml", "steps:¦"),
    ("markdown", "A sentence that goes ¦"),
    ("plaintext", "Dear reader, ¦"),
    ("kotlin", "fun area¦"),
]
ONE = [
    ("python", "y = f(¦)"),
    ("python", "y = f(¦"),
    ("python", "y = ¦"),
    ("python", "return ¦"),
    ("python", "def f():\n    return a.¦\n"),
    ("python", "for x in ¦"),
    ("python", "¦value = 1"),
    ("python", "x = 1  # a word ¦"),
    ("python", "s = 'abc¦"),
    ("javascript", "const a = b + ¦"),
    ("javascript", "return foo.¦"),
    ("typescript", "let x: ¦"),
    ("go", "x := ¦"),
    ("rust", "let x = ¦"),
    ("c", "int x = ¦"),
    ("java", "int x = y.¦"),
    ("kotlin", "val y = ¦"),
    ("ruby", "if x == ¦"),
    ("lua", "for i = 1, ¦"),
    ("css", "a {\n  color: ¦\n}\n"),
]


@pytest.mark.parametrize(("language", "text"), MANY)
def test_many_lines_where_a_block_or_statement_begins(language: str, text: str) -> None:
    before, after = text.split("¦")
    assert not is_single_line(before + after, len(before), language)


@pytest.mark.parametrize(("language", "text"), ONE)
def test_one_line_inside_what_is_begun(language: str, text: str) -> None:
    before, after = text.split("¦")
    assert is_single_line(before + after, len(before), language)


def test_a_long_text_is_read_around_the_place() -> None:
    before = "value = [1, 2, 3]\n" * 20_000
    assert is_single_line(before + "y = ", len(before) + 4, "python")
    assert not is_single_line(before + "\n" + before, len(before), "python")
