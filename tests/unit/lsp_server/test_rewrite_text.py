"""Rewrites beyond the golden cases: they never fail, keep the selection's ends, and stay inside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import for_model
from lsp_server.fences import code_in
from lsp_server.rewrite_text import clean_rewrite, placed_draft

_PIECES = [
    "x = 1",
    "🙂",
    "(",
    ")",
    "{",
    "}",
    "\n",
    "\r\n",
    "    ",
    "\t",
    "```",
    "```python",
    "~~~",
    "Sure:",
    "def f():",
]
_PIECES += ["return 1", " ", '"""', "<|im_end|>", "if a:", "`"]
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=25).map("".join)
_LANGUAGES = st.sampled_from(["python", "javascript", "go", "markdown", "html", "unheard-of"])


@given(_TEXTS, _TEXTS, _TEXTS, _TEXTS, _LANGUAGES)
def test_whatever_is_said_the_ends_of_the_selection_stay(
    said: str, before: str, selection: str, after: str, language: str
) -> None:
    found = clean_rewrite(said, before, selection, after, language)
    if found is None:
        return
    chosen = for_model(selection)
    assert found.strip()
    assert found != chosen
    assert "\r" not in found
    assert "<|im_end|>" not in found or "<|im_end|>" in "\n".join((before, selection, after))
    if chosen.strip():
        assert found.endswith("\n") == chosen.endswith("\n")


def test_an_answer_that_is_cut_off_in_its_fence_is_still_code() -> None:
    assert clean_rewrite("Here:\n```python\nx = 2\ny = 3", "", "x = 1\n", "", "python") == "x = 2\ny = 3\n"


def test_tildes_fence_too_and_hold_backticks() -> None:
    said = "~~~~\n```\nx\n```\n~~~~"
    assert code_in(said, "", "y", "", "unheard-of") == "```\nx\n```"


def test_a_selection_of_blank_lines_takes_what_is_said() -> None:
    assert clean_rewrite("x = 1", "def f():\n", "    \n", "", "python") == "    x = 1\n"


def test_an_empty_selection_takes_what_is_said() -> None:
    assert clean_rewrite("x = 1\ny = 2", "def f():\n    ", "", "\n", "python") == "x = 1\n    y = 2"


@pytest.mark.parametrize(
    ("before", "selection", "said", "expected"),
    [
        (
            "def f(n):\n",
            "    print(n)\n",
            "import json\n\nprint(json.dumps(n))",
            "    import json\n\n    print(json.dumps(n))\n",
        ),
        (
            "def f(n):\n    ",
            "print(n)",
            "import json\n\nprint(json.dumps(n))",
            "import json\n\n    print(json.dumps(n))",
        ),
        (
            "class A:\n    def f(self, rows):\n",
            "        total = 0\n        for row in rows:\n            total += row\n        return total\n",
            "import numpy as np\n\ntotal = np.sum(rows)\n\nreturn total",
            "        import numpy as np\n\n        total = np.sum(rows)\n\n        return total\n",
        ),
        (
            "def f():\n    if a:\n",
            "        x = 1\n    return x\n",
            "    y = 1\n\nreturn y",
            "        y = 1\n\n    return y\n",
        ),
    ],
)
def test_no_line_leaves_the_indentation_of_the_selection(before: str, selection: str, said: str, expected: str) -> None:
    assert clean_rewrite(said, before, selection, "", "python") == expected


def test_lines_behind_a_blank_one_stay_inside_in_other_languages_too() -> None:
    said = "const _ = require('lodash');\n\nreturn _(items).sum();"
    found = clean_rewrite(said, "function f(items) {\n", "  return sum(items);\n", "}\n", "javascript")
    assert found == "  const _ = require('lodash');\n\n  return _(items).sum();\n"


def test_a_first_sentence_that_is_code_stays() -> None:
    said = "class Here:\n    x = 1"
    assert clean_rewrite(said, "", "class A:\n    x = 1", "\n", "python") == said


@pytest.mark.parametrize(
    ("selection", "instruction"),
    [
        ('if token == "<|im_end|>":\n    stop()\n', "Tidy."),
        ("if token == end:\n    stop()\n", "Compare to <|im_end|>."),
    ],
)
def test_control_tokens_in_the_persons_own_text_are_text(selection: str, instruction: str) -> None:
    said = 'if token == "<|im_end|>":\n    halt()'
    assert clean_rewrite(said, "", selection, "", "python", instruction) == said + "\n"
    assert clean_rewrite("x = 1<|im_end|>y", "", "x = 2\n", "", "python", "Tidy.") == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "settled", "selection", "placed"),
    [
        ("a = 2\nb", 6, "a = 1\nb = 2\n", ("a = 2\nb", 6)),
        ("a = 2\nb", 6, "    a = 1\n    b = 2\n", ("    a = 2\n    b", 10)),
        ("a = 2\nb", 7, "    a = 1\n    b = 2\n", ("    a = 2\n    b", 15)),
        ("a = 2\n\nif a:\n    b", 0, "\n\n  a = 1\n\n  b = 2", ("\n\n  a = 2\n\n  if a:\n      b", 2)),
        ("    a = 2\n    b", 5, "    a = 1\n    b = 2\n", ("    a = 2\n    b", 5)),
        ("a\n    b", 2, "a\n    b", ("a\n    b", 2)),
        ("", 0, "\ta\n", ("", 0)),
        ("é🙂\nx", 3, "\té\n\tx", ("\té🙂\n\tx", 4)),
    ],
)
def test_a_draft_stands_where_its_text_will(text: str, settled: int, selection: str, placed: tuple[str, int]) -> None:
    assert placed_draft(text, settled, selection) == placed


@given(st.text("ab \n"), st.text("ab \n\t"), st.data())
def test_what_is_settled_of_a_draft_stays_the_same_text(text: str, selection: str, data: st.DataObject) -> None:
    settled = data.draw(st.integers(0, len(text)))
    placed, count = placed_draft(text, settled, selection)
    assert placed[:count].split() == text[:settled].split()
    assert placed[count:].split() == text[settled:].split()
