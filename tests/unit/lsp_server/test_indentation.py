"""Indentation: the unit a document shows, and the reading of an engine's lines that makes sense."""

from __future__ import annotations

import pytest

from lsp_server.indentation import fitted, opens_block, unit_of
from lsp_server.languages import language_of


@pytest.mark.parametrize(
    ("lines", "unit"),
    [
        (["a:", "    b"], "    "),
        (["a {", "  b", "  c {", "    d"], "  "),
        (["a {", "\tb"], "\t"),
        (["def f():", "    x = call(a,", "             b)", "    if x:", "        y"], "    "),
        (["  a"], "  "),
        (["a"], "?"),
        ([], "?"),
    ],
)
def test_the_unit_a_document_shows(lines: list[str], unit: str) -> None:
    assert unit_of(lines, "?") == unit


@pytest.mark.parametrize(
    ("language", "line", "opens"),
    [
        ("python", "if a:", True),
        ("python", "if a:  # why", True),
        ("python", "x = {'a': 1}", False),
        ("c", "label: x", False),
        ("c", "case 1:", True),
        ("javascript", "f(() => {", True),
        ("javascript", 's = "{"', False),
        ("lua", "if a then", True),
        ("lua", "if a then b() end", False),
        ("ruby", "xs.each do |x|", True),
        ("ruby", "puts x if y", False),
    ],
)
def test_what_opens_a_block(language: str, line: str, opens: bool) -> None:
    assert opens_block(line, language_of(language)) is opens


def test_lines_that_carry_the_places_indentation_stay_to_the_letter() -> None:
    lines = ["while a:", "      odd()", "    b()"]
    assert fitted(lines, head="    ", origin="    ", unit="    ", language=language_of("python")) == lines


def test_leaving_the_scope_beats_lines_that_cannot_stand_where_they_would() -> None:
    lines = ["return []", "    if a:", "        return b", "    if c:"]
    found = fitted(lines, head="        ", origin="", unit="    ", language=language_of("python"))
    assert found == lines


def test_blank_lines_are_empty() -> None:
    found = fitted(["a", "   ", "  b"], head="  ", origin="", unit="  ", language=language_of("c"))
    assert found == ["a", "", "  b"]
