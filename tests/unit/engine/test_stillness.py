"""Standing still, as somebody sees it who looks now and then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.protocol.stillness import Stillness


@pytest.mark.parametrize(
    ("limit_s", "tick_s", "looks"),
    [(10.0, 1.0, 10), (10.0, 4.0, 3), (0.5, 1.0, 1), (1.0, 1.0, 1)],
)
def test_it_takes_so_many_looks_after_the_first(limit_s: float, tick_s: float, looks: int) -> None:
    stillness = Stillness(limit_s, tick_s)
    assert [stillness.look("same") for _ in range(looks + 2)] == [False] * looks + [True, True]


@given(marks=st.lists(st.integers(0, 2) | st.none(), max_size=60), looks=st.integers(1, 6))
def test_it_is_told_exactly_when_the_last_looks_saw_the_same(marks: list[int | None], looks: int) -> None:
    stillness = Stillness(float(looks), 1.0)
    for at, mark in enumerate(marks):
        seen = marks[max(0, at - looks) : at + 1]
        assert stillness.look(mark) == (mark is not None and len(seen) == looks + 1 and set(seen) == {mark})
