"""What the measuring of growth makes of its times: points, files that grow, and a picture."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bench.growth.of_server import _as_measured, text_of
from tests.bench.growth.plot import draw, panels
from tests.bench.growth.point import Point, point_of, sizes
from tests.bench.scaling import merged, options_of, read, write


def test_a_point_is_the_median_and_the_worst_in_milliseconds() -> None:
    point = point_of("a key", 10, [0.003, 0.001, 0.002], rss_mb=1.23456)
    assert point == Point("a key", 10, 2.0, 3.0, (("rss_mb", 1.235),))


@pytest.mark.parametrize("lines", [1, 4, 1_000, 1_001])
def test_a_file_has_the_lines_it_is_said_to_have(lines: int) -> None:
    text = text_of(lines)
    assert text.count("\n") == lines
    compile(text if lines % 4 == 0 else "", "text", "exec")


def test_the_line_that_is_typed_on_is_blank() -> None:
    assert text_of(1_000).split("\n")[1_000 // 8 * 4 + 3] == ""


def test_points_outlive_a_run_and_give_way_to_fresh_ones_of_their_curve(tmp_path: Path) -> None:
    file = tmp_path / "scaling.json"
    assert read(file) == []
    before = [point_of("a", 1, [0.1], more=2.0), point_of("b", 1, [0.1])]
    write(file, before)
    assert read(file) == before
    fresh = [point_of("a", 2, [0.2])]
    assert merged(read(file), fresh) == [before[1], fresh[0]]


def test_a_panel_holds_one_curve_in_the_order_of_sizes() -> None:
    points = [point_of("a", 2, [0.1]), point_of("b", 1, [0.1]), point_of("a", 1, [0.1])]
    assert {curve: [point.x for point in same] for curve, same in panels(points).items()} == {"a": [1, 2], "b": [1]}


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    points = [point_of(curve, x, [x / 100]) for curve in ("a", "b", "c", "d") for x in (1, 10, 1_000)]
    draw([*points, point_of("alone", 1, [0.1])], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_line_refuses_a_curve_it_does_not_know() -> None:
    assert options_of(["--only", "files"]).only == ["files"]
    with pytest.raises(SystemExit):
        options_of(["--only", "lines"])


def test_a_quick_run_takes_every_other_size_and_the_smallest() -> None:
    assert options_of(["--quick"]).quick
    assert sizes((1, 2, 4, 8), quick=True) == (1, 4)
    assert sizes((1, 2, 4, 8), quick=False) == (1, 2, 4, 8)


def test_points_are_told_as_they_are_measured() -> None:
    made: list[int] = []

    async def points() -> AsyncIterator[Point]:
        for x in (1, 2):
            made.append(x)
            yield point_of("a", x, [0.1])

    found = _as_measured(points())
    assert made == []
    assert next(found).x == 1
    assert made == [1]
    assert [point.x for point in found] == [2]
