"""What a text imports and defines, by grammar and by lines, and what is open around a place."""

from __future__ import annotations

import pytest

from lsp_server.outline import PARSED_CHARS, Outline, outline

# Language id → (text with `‸`, imports, names defined, headers around the mark).
SAMPLES: dict[str, tuple[str, list[str], list[str], list[str]]] = {
    "python": (
        "import os\nfrom a import (\n    b,\n)"
        "\n\n@d\nclass A(B):\n    async def f(self, x):\n        return ‸x\n\ndef g(): ...\n",
        ["import os", "from a import (\n    b,\n)"],
        ["A", "f", "g"],
        ["class A(B):", "    async def f(self, x):"],
    ),
    "javascript": (
        'import a from "b";'
        "\nexport class A {\n  m(x) {\n    return [1].map((y) => {\n      ‸\n    });\n  }\n}\nfunction g() {}\n",
        ['import a from "b";'],
        ["A", "m", "g"],
        ["class A {", "  m(x) {", "    return [1].map((y) => {"],
    ),
    "typescript": (
        'import { a } from "b";\ninterface I { x: number }\ntype T = string;'
        "\nclass A {\n  m(x: T): I {\n    ‸\n  }\n}\n",
        ['import { a } from "b";'],
        ["I", "T", "A", "m"],
        ["class A {", "  m(x: T): I {"],
    ),
    "go": (
        'package a\n\nimport "fmt"\n\ntype S struct {\n\tA int\n}\n\nfunc (s S) M(x int) string {\n\t‸\n}\n',
        ["package a", 'import "fmt"'],
        ["S", "M"],
        ["func (s S) M(x int) string {"],
    ),
    "rust": (
        "use std::io;\nstruct S { a: i32 }\nimpl S {\n    pub fn f(&self) -> i32 {\n        ‸0\n    }\n}\n",
        ["use std::io;"],
        ["S", "S", "f"],
        ["impl S {", "    pub fn f(&self) -> i32 {"],
    ),
    "java": (
        "package p;\nimport a.B;"
        "\n\npublic class A extends B {\n    A() {}\n    String f(int x) {\n        ‸\n    }\n}\n",
        ["package p;", "import a.B;"],
        ["A", "A", "f"],
        ["public class A extends B {", "    String f(int x) {"],
    ),
    "c": (
        "#include <a.h>\nstruct S { int a; };\nstatic int *f(struct S *s,\n              int x)\n{\n    ‸\n}\n",
        ["#include <a.h>"],
        ["S", "f", "S"],
        ["static int *f(struct S *s,\n              int x)\n{"],
    ),
    "cpp": (
        "#include <a>\nnamespace n {\nclass A : B {\n  void f(int x) const {\n    ‸\n  }\n};\n}\n",
        ["#include <a>"],
        ["n", "A", "f"],
        ["namespace n {", "class A : B {", "  void f(int x) const {"],
    ),
    "csharp": (
        "using A.B;\nnamespace N {\n  class A {\n    string F(int x) {\n      ‸\n    }\n  }\n}\n",
        ["using A.B;"],
        ["N", "A", "F"],
        ["namespace N {", "  class A {", "    string F(int x) {"],
    ),
    "ruby": (
        'require "a"\nmodule M\n  class A < B\n    def f(x)\n      ‸x\n    end\n  end\nend\n',
        [],
        ["M", "A", "f"],
        ["module M", "  class A < B", "    def f(x)"],
    ),
    "php": (
        "<?php\nnamespace N;\nuse A\\B;\nclass A {\n  function f($x) {\n    ‸\n  }\n}\n",
        ["namespace N;", "use A\\B;"],
        ["A", "f"],
        ["class A {", "  function f($x) {"],
    ),
    "shellscript": ("f() {\n  echo ‸\n}\ng() { :; }\n", [], ["f", "g"], ["f() {"]),
    "html": ("<ul id='a'>\n  <li>‸</li>\n</ul>\n", [], [], ["<ul id='a'>", "  <li></li>"]),
    "css": ('@import "a";\n@media x {\n  .b { c: ‸d }\n}\n', ['@import "a";'], [], ["@media x {", "  .b { c: d }"]),
    "json": ('{\n  "a": {\n    "b": [‸1]\n  }\n}\n', [], [], ['  "a": {', '    "b": [1]']),
    "yaml": ("a:\n  b:\n    - ‸c\n", [], [], ["a:", "  b:"]),
    "toml": ("[a]\nb = ‸1\n", [], [], ["[a]"]),
    "lua": (
        "function A.f(x)\n  g(function()\n    ‸\n  end)\nend\nlocal function g() end\n",
        [],
        ["A.f", "g"],
        ["function A.f(x)", "  g(function()"],
    ),
    "markdown": ("# A\n\n## B\n\nte‸xt\n", [], [], ["# A", "## B"]),
    # No grammar from here on.
    "kotlin": (
        "package p\nimport a.B\n\nclass A : B {\n    fun f(x: Int): Int {\n        ‸return x\n    }\n}\n",
        ["package p", "import a.B"],
        ["A", "f"],
        ["class A : B {", "    fun f(x: Int): Int {"],
    ),
    "elixir": (
        "import A\ndefmodule M do\n  def f(x) do\n    ‸x\n  end\nend\n",
        ["import A"],
        ["M", "f"],
        ["defmodule M do", "  def f(x) do"],
    ),
    "plaintext": ("Dear all,\n\n  ‸the class is full.\n", [], [], []),
}


def at_mark(marked: str) -> tuple[str, int]:
    before, behind = marked.split("‸")
    return before + behind, len(before)


@pytest.mark.parametrize("language", list(SAMPLES))
def test_imports_and_definitions_are_found(language: str) -> None:
    marked, imports, names, _ = SAMPLES[language]
    text, _ = at_mark(marked)
    found = outline(text, 0, language)
    assert [each for _, each in found.imports] == imports
    assert [definition.name for definition in found.definitions] == names
    assert all(text[start:].startswith(each) for start, each in found.imports)


@pytest.mark.parametrize("language", list(SAMPLES))
def test_what_is_open_around_a_place_is_found(language: str) -> None:
    marked, _, _, headers = SAMPLES[language]
    text, offset = at_mark(marked)
    assert [definition.header for definition in outline(text, offset, language).around] == headers


def test_places_are_counted_in_code_points() -> None:
    text = "# 🙂é\nimport os\n\ndef größe(x):\n    # 🙂\n    return x\n"
    found = outline(text, text.index("return"), "python")
    assert found.imports == ((text.index("import"), "import os"),)
    (definition,) = found.definitions
    assert (definition.name, definition.start, definition.end) == ("größe", text.index("def"), len(text) - 1)
    assert [each.header for each in found.around] == ["def größe(x):"]


def test_a_text_too_large_to_parse_is_read_by_lines() -> None:
    filler = "x = 1\n" * (PARSED_CHARS // 6)
    text = "import os\n" + filler + "class A:\n    def f(self):\n        if self:\n            return 1\n"
    found = outline(text, text.index("return"), "python")
    assert [each for _, each in found.imports] == ["import os"]
    assert [definition.name for definition in found.definitions] == ["A", "f"]
    assert [each.header for each in found.around] == ["class A:", "    def f(self):"]
    assert outline("", 0, "perl") == Outline()
    assert outline("\n", 1, "perl") == Outline()
