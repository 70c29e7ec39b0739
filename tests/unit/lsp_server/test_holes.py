"""What counts as a hole."""

from __future__ import annotations

import pytest

from lsp_server.holes import Hole, find_holes
from lsp_server.settings import Settings

MARKERS = Settings().hole_markers


def found(text: str, markers: tuple[str, ...] = MARKERS) -> list[str]:
    """The text with every hole in ‹›."""
    marked, done = [], 0
    for start, end, _ in find_holes(text, markers):
        marked.append(f"{text[done:start]}‹{text[start:end]}›")
        done = end
    return "".join([*marked, text[done:]]).splitlines()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("return <fill>", ["return ‹<fill>›"]),
        ("f(<fill>, <fill>)", ["f(‹<fill>›, ‹<fill>›)"]),
        ("x = <fill><fill>\ny = <fill>", ["x = ‹<fill><fill>›", "y = ‹<fill>›"]),
        ("x = <fill> <fill>\ny = <fill>", ["x = ‹<fill> <fill>›", "y = ‹<fill>›"]),
        ("<fill>\n\n<fill>", ["‹<fill>›", "", "‹<fill>›"]),
        ("def f():\n    ...\n", ["def f():", "    ‹...›"]),
        ("def f(): ...\n", ["def f(): ‹...›"]),
        ("async def f(a: int) -> int:  ...\r\nx", ["async def f(a: int) -> int:  ‹...›", "x"]),
        ("def f():\r\n    ...  \r\n", ["def f():", "    ‹...›  "]),
        ("x = [1, ...]\n", ["x = [1, ...]"]),
        ("f(...args);\n", ["f(...args);"]),
        ("def f(a: tuple[int, ...]) -> None:\n", ["def f(a: tuple[int, ...]) -> None:"]),
        ('{"a": ...}\n', ['{"a": ...}']),
        ("    pass  # fill\n", ["    ‹pass  # fill›"]),
        ("    pass # fill\n", ["    ‹pass # fill›"]),
        ("def f(): pass  # fill\n", ["def f(): ‹pass  # fill›"]),
        ("    pass  # filler\n", ["    pass  # filler"]),
        ("    pass\n", ["    pass"]),
    ],
)
def test_markers_and_stubs_are_holes(text: str, wanted: list[str]) -> None:
    assert found(text) == wanted


def test_markers_are_the_persons_own() -> None:
    assert found("a HOLE b HOLES <fill>", ("HOLE",)) == ["a ‹HOLE› b HOLES <fill>"]
    assert found("a ?? b", ("??", "?")) == ["a ‹??› b"]
    assert found("anything", ("", " ")) == ["anything"]


def test_places_are_counted_in_code_points() -> None:
    assert find_holes("🙂 <fill> a\n<fill>", ("<fill>",)) == [Hole(2, 8), Hole(11, 17)]


def test_only_holes_wholly_inside_a_selection_count() -> None:
    text = "<fill>,<fill>,<fill>"
    assert find_holes(text, MARKERS, 1, 20) == [Hole(7, 13), Hole(14, 20)]
    assert find_holes(text, MARKERS, 1, 19) == [Hole(7, 13)]


def test_a_selection_that_ends_inside_a_line_makes_no_stub_of_its_start() -> None:
    text = "def f():\n    ...\nx = ...\nreturn ...or\n    ... or\n"
    assert find_holes(text, MARKERS, 0, text.index(" or")) == [Hole(13, 16)]
    assert find_holes(text, MARKERS, 11, 16) == [Hole(13, 16)]
