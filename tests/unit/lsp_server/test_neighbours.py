"""What is put in front of a window: what its document has lost, and other documents, within a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.neighbours import Neighbour, Place, text_in_front
from lsp_server.tokens import cost_of

PYTHON = (
    "import math\nimport os\nfrom shapes import Circle\n\n\ndef area_of(circle):\n    return circle.area\n\n\n"
    "class Report(Base):\n    def first(self):\n        return 1\n\n    def total(self, shapes):\n"
    "        circle = Circle(2)\n        ‸\n"
)


def place(marked: str, window_from: str, language: str = "python", path: str = "a.py") -> Place:
    """A gap at `‸` whose window begins where `window_from` stands."""
    before, behind = marked.split("‸")
    text = before + behind
    return Place(path, language, text, text.index(window_from), len(before), len(before), len(text))


def test_a_window_gets_back_what_it_has_lost() -> None:
    lost = place(PYTHON + "        area_of(circle)\n", "        circle = Circle")
    assert text_in_front(lost, [], 200) == (
        "import math\nimport os\nfrom shapes import Circle\n# def area_of(circle):\n"
        "class Report(Base):\n    def total(self, shapes):\n        # ...\n"
    )


def test_a_window_that_has_lost_nothing_gets_nothing() -> None:
    assert text_in_front(place(PYTHON, "import math"), [], 200) == ""
    assert text_in_front(place("‸", ""), [], 200) == ""


def test_names_near_the_gap_decide_what_is_kept_in_a_tight_budget() -> None:
    assert text_in_front(place(PYTHON, "        circle = Circle"), [], 40) == (
        "from shapes import Circle\nclass Report(Base):\n    def total(self, shapes):\n        # ...\n"
    )
    assert text_in_front(place(PYTHON, "        circle = Circle"), [], 12) == (
        "    def total(self, shapes):\n        # ...\n"
    )


def test_definitions_behind_the_window_are_named_too() -> None:
    marked = "x = compute(‸)\n" + "y = 1\n" * 50 + "def compute(values):\n    return 1\n"
    here = place(marked, "x = compute")
    cut = Place(here.path, here.language, here.text, 0, here.start, here.end, 100)
    assert text_in_front(cut, [], 100) == "# def compute(values):\n"


OTHER = "import sys\n\n\ndef noise():\n    return 0\n" * 20 + (
    "class Circle:\n    def __init__(self, radius):\n        self.radius = radius\n\n"
    "    def area_of_shapes(self, total):\n        return total\n"
)


def test_other_documents_come_as_comments_with_their_paths_most_recent_first() -> None:
    here = place("import math\nradius = 1\ntotal = Circle(radius)‸\n", "import math")
    shown = text_in_front(here, [Neighbour("lib/b.py", OTHER), Neighbour("c.py", "x = Circle(radius)\n")], 300)
    lines = shown.split("\n")
    assert lines[0] == "# path: lib/b.py"
    assert "# class Circle:" in lines
    assert lines.index("# path: c.py") > lines.index("# class Circle:")
    assert lines[-2:] == ["# path: a.py", ""]
    assert all(line.startswith("#") for line in lines[:-1])
    assert "noise" not in shown


def test_a_document_with_hardly_a_common_name_is_left_out() -> None:
    here = place("total = 1‸\n", "total")
    assert text_in_front(here, [Neighbour("b.py", "for total in self.return_value:\n    pass\n")], 300) == ""


@pytest.mark.parametrize(
    ("language", "start", "end"),
    [
        ("css", "/* path: b\nalpha beta gamma */\n", "/* path: a.py */\n"),
        ("html", "<!-- path: b\nalpha beta gamma -->\n", "<!-- path: a.py -->\n"),
        ("lua", "-- path: b\n-- alpha beta gamma\n", "-- path: a.py\n"),
        ("json", "", ""),
        ("plaintext", "", ""),
    ],
)
def test_the_comments_are_those_of_the_language(language: str, start: str, end: str) -> None:
    here = place("alpha beta gamma‸", "alpha", language)
    assert text_in_front(here, [Neighbour("b", "alpha beta gamma\n")], 300) == start + end


def test_an_excerpt_that_would_end_its_comment_is_left_out() -> None:
    here = place("alpha beta gamma‸", "alpha", "css")
    assert text_in_front(here, [Neighbour("b", "/* alpha beta gamma */\n")], 300) == ""


def test_carriage_returns_stay_out() -> None:
    lost = place(PYTHON.replace("\n", "\r\n"), "        circle = Circle")
    other = Neighbour("b.py", "x = Circle(circle)\r\ny = total\r\n")
    shown = text_in_front(lost, [other], 300)
    assert "\r" not in shown
    assert "# y = total\n" in shown


@given(st.integers(0, 200), st.integers(0, len(PYTHON) - 3), st.sampled_from(["python", "go", "css", "perl", "json"]))
def test_the_budget_is_kept(budget: int, left: int, language: str) -> None:
    here = place(PYTHON, "import math", language)
    cut = Place(here.path, language, here.text, left, here.start, here.end, here.right)
    shown = text_in_front(cut, [Neighbour("b.py", OTHER), Neighbour("c.py", PYTHON)], budget)
    assert cost_of(shown.split("\n")[:-1]) <= budget
    assert shown == text_in_front(cut, [Neighbour("b.py", OTHER), Neighbour("c.py", PYTHON)], budget)
