"""Every grammar of the table: its wheel is there, its kinds of nodes exist, and it tells what it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lsp_server.grammars import grammar_of, nodes_of, parser_of
from lsp_server.languages import language_of
from lsp_server.syntax import new_errors, tree_kind

# Language id → a text with a comment, a string, a scope and an end that breaks it. `‹…›` marks the comment,
# `«…»` the string, `❬…❭` the scope that must be found. Empty marks stand where a language has none.
SAMPLES = {
    "python": ("❬def f(x):\n    ‹# c›\n    return «'s'»❭\n", "x = )\n"),
    "javascript": ("❬function f(x) {\n  ‹// c›\n  return «`s`»;\n}❭\n", "f(;\n"),
    "javascriptreact": ("❬function f(x) {\n  ‹/* c */›\n  return <p a=«'s'»/>;\n}❭\n", "f(;\n"),
    "typescript": ("❬function f(x: number): string {\n  ‹// c›\n  return «'s'»;\n}❭\n", "f(;\n"),
    "typescriptreact": ("❬function f(x: number) {\n  ‹// c›\n  return <p a=«'s'»/>;\n}❭\n", "f(;\n"),
    "go": ('package a\n\n❬func f(x int) string {\n\t‹// c›\n\treturn «"s"»\n}❭\n', "func g( {\n"),
    "rust": ('❬fn f(x: i32) -> &str {\n    ‹// c›\n    «"s"»\n}❭\n', "fn g( {\n"),
    "java": ('class A {\n  ❬String f(int x) {\n    ‹// c›\n    return «"s"»;\n  }❭\n}\n', "class { (\n"),
    "c": ('❬char *f(int x) {\n  ‹/* c */›\n  return «"s"»;\n}❭\n', "int g( {\n"),
    "cpp": ('❬auto f(int x) {\n  ‹// c›\n  return «R"(s)"»;\n}❭\n', "int g( {\n"),
    "csharp": ('class A {\n  ❬string F(int x) {\n    ‹// c›\n    return «"s"»;\n  }❭\n}\n', "class { (\n"),
    "ruby": ("❬def f(x)\n  ‹# c›\n  «'s'»\nend❭\n", "def g(\n"),
    "php": ("<?php\n❬function f($x) {\n  ‹// c›\n  return «'s'»;\n}❭\n", "f(;\n"),
    "shellscript": ("❬f() {\n  ‹# c›\n  echo «'s'»\n}❭\n", "g() {\n"),
    "html": ("❬<div id=«'s'»>‹<!-- c -->›</div>❭\n", "<p a=></q>\n"),
    "css": ("❬.a {\n  ‹/* c */›\n  content: «'s'»;\n}❭\n", "} .b {{\n"),
    "json": ('{❬"a": [«"s"»]❭}\n', "{,}\n"),
    "jsonc": ('{‹// c›\n❬"a": [«"s"»]❭}\n', "{,}\n"),
    "yaml": ("❬a:\n  ‹# c›\n  b: «'s'»\n❭", "a: ]\n"),
    "toml": ("❬[a]\n‹# c›\nb = «'s'»\n❭", "= 1\n"),
    "lua": ("❬function f(x)\n  ‹-- c›\n  return «'s'»\nend❭\n", "function g(\n"),
    "markdown": ("❬# A\n\n‹<!-- c -->›\n❭", ""),
}
MARKS = "‹›«»❬❭"


def plain(marked: str) -> str:
    return "".join(character for character in marked if character not in MARKS)


def span(marked: str, opening: str, closing: str) -> tuple[int, int]:
    """Where the marked part lies in the plain text."""
    return len(plain(marked.split(opening, maxsplit=1)[0])), len(plain(marked.split(closing, maxsplit=1)[0]))


@pytest.mark.parametrize("language", list(SAMPLES))
def test_a_grammar_finds_comments_and_strings(language: str) -> None:
    marked, _ = SAMPLES[language]
    grammar = language_of(language).grammar
    for opening, closing, kind in (("‹", "›", "comment"), ("«", "»", "string")):
        if opening in marked:
            start, end = span(marked, opening, closing)
            assert tree_kind(plain(marked), (start + end) // 2, grammar) == kind
            assert tree_kind(plain(marked), end - 1, grammar) == kind
    assert tree_kind(plain(marked), len(plain(marked)), grammar) in ("code", "comment")


@pytest.mark.parametrize("language", list(SAMPLES))
def test_a_grammar_finds_the_scope(language: str) -> None:
    marked, _ = SAMPLES[language]
    grammar = language_of(language).grammar
    parser, facts = parser_of(grammar), grammar_of(grammar)
    assert parser is not None
    assert facts is not None
    root = parser.parse(plain(marked).encode()).root_node
    found = {(node.start_byte, node.end_byte) for node in nodes_of(grammar, root, facts.definitions | facts.scopes)}
    start, end = span(marked, "❬", "❭")
    assert (start, end) in found


@pytest.mark.parametrize("language", [name for name, (_, broken) in SAMPLES.items() if broken])
def test_a_grammar_finds_a_syntax_error(language: str) -> None:
    marked, broken = SAMPLES[language]
    text = plain(marked)
    parser = parser_of(language_of(language).grammar)
    assert parser is not None
    assert not parser.parse(text.replace("// c\n", "").encode()).root_node.has_error
    assert new_errors(text, text + broken, language)
    assert not new_errors(text, text, language)


@pytest.mark.parametrize("language", list(SAMPLES))
def test_every_kind_of_the_table_exists_in_its_grammar(language: str) -> None:
    name = language_of(language).grammar
    parser, facts = parser_of(name), grammar_of(name)
    assert parser is not None
    assert parser.language is not None
    assert facts is not None
    known = {parser.language.node_kind_for_id(number) for number in range(parser.language.node_kind_count)}
    wanted = facts.comments | facts.strings | facts.holes | facts.prose
    assert wanted | facts.definitions | facts.scopes | facts.imports <= known


def test_a_grammar_nobody_has_is_none() -> None:
    assert parser_of("perl") is None
    assert tree_kind("# a", 2, "perl") is None


def test_no_grammar_is_loaded_before_it_is_asked() -> None:
    code = (
        "import sys, lsp_server.server, lsp_server.__main__\n"
        "from lsp_server.syntax import position_kind\n"
        "names = lambda: sorted(n for n in sys.modules if n.startswith('tree_sitter'))\n"
        "assert names() == [], names()\n"
        "position_kind('x = \"a', 6, 'lua')\n"
        "assert 'tree_sitter_lua' in names() and 'tree_sitter_python' not in names(), names()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
