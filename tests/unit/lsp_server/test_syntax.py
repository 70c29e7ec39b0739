"""What kind of place the cursor is in, in languages with a grammar and without."""

from __future__ import annotations

import pytest

from lsp_server.languages import language_of
from lsp_server.lexing import closer_of, code_of_line, scan, stack_after
from lsp_server.syntax import has_errors, has_grammar, new_errors, position_kind, prefers_single_line


def _at_cursor(marked: str) -> tuple[str, int]:
    before, after = marked.split("‸")
    return before + after, len(before)


@pytest.mark.parametrize(
    ("language", "marked", "kind"),
    [
        ("python", "# todo ‸", "comment"),
        ("python", "# todo‸\nx = 1", "comment"),
        ("python", 's = "abc‸"', "string"),
        ("python", 's = "abc‸', "string"),
        ("python", "s = '‸'", "string"),
        ("python", 's = "abc"‸', "code"),
        ("python", "x = 1  # c\ny = ‸", "code"),
        ("python", "s = 'it\\'s ‸'", "string"),
        ("python", '"""Doc.\n\n‸\n"""', "string"),
        ("python", '"""Doc "quoted" ‸"""', "string"),
        ("python", 'f"{x‸}"', "code"),
        ("python", 'f"{x}‸"', "string"),
        ("python", 's = "# no ‸"', "string"),
        ("javascript", "`a${‸}b`", "code"),
        ("javascript", "`a${x}‸b`", "string"),
        ("javascript", "/* a ‸ */", "comment"),
        ("javascript", "/* a */‸", "code"),
        ("javascript", "const r = /[\"']/; ‸", "code"),
        ("javascriptreact", "const a = <p>don't ‸</p>;", "code"),
        ("typescript", "const s: string = 'a‸';", "string"),
        ("rust", "fn f<'a>(x: &'a str) { ‸ }", "code"),
        ("c", "// don't\nint x = ‸", "code"),
        ("shellscript", "echo $# ‸", "code"),
        ("shellscript", "echo a # ‸", "comment"),
        ("lua", "--[[ a\n‸ ]]", "comment"),
        ("html", "<p>don't ‸</p>", "code"),
        ("html", "<!-- ‸ -->", "comment"),
        ("sql", "select 'a‸'", "string"),
        ("markdown", "it's \"‸", "code"),
        ("unheard-of", "it's ‸", "code"),
        ("html", "<p>see http://a.b ‸</p>", "code"),
        ("ruby", '"a#{x‸}"', "code"),
        ("csharp", '$"a{x‸}"', "code"),
        ("shellscript", 'echo "$(ls ‸)"', "code"),
        ("javascriptreact", "const a = <p>http://a.b ‸</p>;", "code"),
    ],
)
def test_the_kind_of_place(language: str, marked: str, kind: str) -> None:
    text, offset = _at_cursor(marked)
    assert position_kind(text, offset, language) == kind


def test_a_place_in_a_large_file_is_read_from_its_neighbourhood() -> None:
    filler = "def f():\n    return 'it'\n\n" * 20_000
    text, offset = _at_cursor(filler + "# todo ‸\n" + filler)
    assert position_kind(text, offset, "python") == "comment"
    assert position_kind(text, offset - len("# todo "), "python") == "code"


@pytest.mark.parametrize(
    ("language", "marked", "is_single"),
    [
        ("python", "def mean(xs):\n    ‸", False),
        ("python", "def mean(xs):\n    ‸\n", False),
        ("python", "def mean(xs):‸\n", False),
        ("python", "y = f(‸)\n", True),
        ("python", "y = f(‸\n", True),
        ("python", "y = f(x)‸\n", False),
        ("python", "y = ‸ + 1\n", True),
        ("python", "y = [1, ‸\n", True),
        ("python", "y = f(\n    ‸\n)\n", False),
        ("python", "y = f(\n    a=‸\n)\n", True),
        ("python", "# todo ‸\n", True),
        ("python", 's = "‸\n', True),
        ("python", '"""Doc.\n‸\n"""', False),
        ("javascript", "function f() {‸\n", False),
        ("javascript", "g(() => {‸\n", False),
        ("javascript", "g(() => {‸})\n", True),
        ("json", '{\n  "a": {\n    ‸\n  }\n}', False),
    ],
)
def test_where_one_line_is_enough(language: str, marked: str, is_single: bool) -> None:
    text, offset = _at_cursor(marked)
    assert prefers_single_line(text, offset, language) is is_single


@pytest.mark.parametrize(
    ("language", "before", "after", "expected"),
    [
        ("python", "x = \n", "x = 1\n", False),
        ("python", "x = 1\n", "x = (1\n", True),
        ("python", "x = (\n", "x = (1\n", False),
        ("python", "a = b\n", "a = 1 b\n", True),
        ("javascript", "f();\n", "f(;\n", True),
        ("javascript", "f();\n", "f({ a: 1 });\n", False),
        ("c", "int x = 1;\n", "int x = (1;\n", True),
        ("c", "int x = 1;\n", "int x = (1);\n", False),
        ("c", "int f() {\n", "int f() {\n}\n", False),
        ("lua", 's = "a"\n', 's = "a\n', True),
        ("go", "f()\n", "f())\n", True),
    ],
)
def test_a_splice_that_breaks_the_syntax_is_seen(language: str, before: str, after: str, expected: bool) -> None:
    assert new_errors(before, after, language) is expected


def test_errors_in_a_text_too_large_to_parse_are_found_by_its_brackets() -> None:
    text = "def f(a):\n    return [a]\n" * 4000
    assert not has_errors(text, "python")
    assert new_errors(text, text + "x = (\n", "python")


def test_grammars_are_known_where_they_are_installed() -> None:
    assert has_grammar("python")
    assert has_grammar("javascript")
    assert not has_grammar("perl")


@pytest.mark.parametrize(
    ("language", "text", "stack"),
    [
        ("python", "f(a, [1", ("(", "[")),
        ("python", "f(a, [1)", ()),
        ("python", "f)", ()),
        ("javascript", "`a${ {b", ("`", "${", "{")),
        ("javascript", "`a${ {b} }c", ("`",)),
        ("javascript", "`${ )", ("`", "${")),
        ("go", "x := `\\`", ()),
        ("python", '"""a "b" c', ('"""',)),
        ("ruby", '"a#{b(', ('"', "#{", "(")),
    ],
)
def test_what_is_open(language: str, text: str, stack: tuple[str, ...]) -> None:
    assert stack_after(text, language_of(language)) == stack


def test_a_stray_closer_is_told() -> None:
    events = list(scan("a)", language_of("python")))
    assert [(event.start, event.end, event.before == event.after) for event in events] == [(1, 2, True)]


def test_closers_by_opener() -> None:
    javascript = language_of("javascript")
    assert [closer_of(opener, javascript) for opener in ("(", "`", "${", "/*", "//")] == [")", "`", "}", "*/", ""]


def test_code_of_a_line_has_no_comment() -> None:
    assert code_of_line('x = "#"  # note', language_of("python")) == 'x = "#"'
    assert code_of_line("x ", language_of("python")) == "x"
