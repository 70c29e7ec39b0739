"""What is counted of a gap's surroundings."""

from __future__ import annotations

import pytest

from engine.canvas_serving.gap_shape import gap_shape
from engine.diffusion.length import GapShape
from engine.tokenizer import ByteTokenizer


@pytest.mark.parametrize(
    ("prefix", "suffix", "expected"),
    [
        ("", "", GapShape(0, (), 0, whole_lines=True)),
        ("abc\n\nde\n    ", "\nfghi\n\nj", GapShape(0, (3, 5, 4, 2), 0, whole_lines=True)),
        ("ab\nx = ", " + 1\ncd", GapShape(0, (3, 3), 8, whole_lines=False)),
        ("ab\n", ")", GapShape(0, (3,), 1, whole_lines=False)),
    ],
)
def test_the_lines_around_a_gap_are_counted_in_tokens(prefix: str, suffix: str, expected: GapShape) -> None:
    assert gap_shape(prefix, suffix, 0, ByteTokenizer()) == expected


def test_only_the_nearest_lines_count() -> None:
    shape = gap_shape("".join(f"{'a' * n}\n" for n in range(1, 50)), "", 7, ByteTokenizer())
    assert shape.present == 7
    assert shape.lines == (50, 49, 48, 47, 46, 45)
