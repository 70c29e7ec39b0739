"""What passes cost between and beyond the measured widths, and how much of a draft is worth its price."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.cost_curve import CostCurve, worthwhile

# A pass of up to eight rows costs hardly more than one; behind that each row costs the same.
STEPPED = CostCurve(((1, 1.0), (8, 1.1), (16, 2.1), (32, 4.1)))
positive = st.floats(0.01, 1000)


@pytest.mark.parametrize(
    ("rows", "cost"),
    [(0, 1.0), (1, 1.0), (8, 1.1), (12, 1.6), (32, 4.1), (48, 6.1)],
    ids=["none", "one", "measured", "between", "the last", "beyond"],
)
def test_cost_is_linear_between_measured_points_and_goes_on_as_steeply_behind_them(rows: int, cost: float) -> None:
    assert STEPPED.of(rows) == pytest.approx(cost)


def test_a_row_more_costs_the_slope_where_the_pass_stands() -> None:
    assert STEPPED.row(4) == pytest.approx(0.1 / 7)
    assert STEPPED.row(20) == pytest.approx(0.125)
    assert CostCurve.linear(0.25).row(100) == pytest.approx(0.25)


def test_milliseconds_become_shares_of_a_single_token_pass() -> None:
    assert CostCurve.measured([(8, 75.0), (1, 50.0)]) == CostCurve(((1, 1.0), (8, 1.5)))


def test_neighbours_that_fall_are_pooled() -> None:
    assert CostCurve.measured([(1, 60.0), (4, 40.0), (8, 75.0)]) == CostCurve(((1, 1.0), (4, 1.0), (8, 1.5)))
    assert CostCurve.measured([(1, 50.0), (4, 80.0), (8, 70.0), (16, 75.0)]) == CostCurve(
        ((1, 1.0), (4, 1.5), (8, 1.5), (16, 1.5))
    )


@pytest.mark.parametrize(
    "pairs", [[], [(1, 50.0)], [(2, 50.0), (4, 60.0)], [(1, 0.0), (2, 1.0)], [(1, 1.0), (2, float("nan"))]]
)
def test_what_does_not_say_the_price_of_a_row_is_no_curve(pairs: list[tuple[int, float]]) -> None:
    assert CostCurve.measured(pairs) is None


@given(st.dictionaries(st.integers(2, 128), positive, min_size=1, max_size=8), positive)
def test_any_measurement_gives_a_curve_that_never_falls(wider: dict[int, float], single: float) -> None:
    curve = CostCurve.measured([(1, single), *wider.items()])
    assert curve is not None
    assert all(curve.of(rows) <= curve.of(rows + 1) + 1e-9 for rows in range(1, 200))


@pytest.mark.parametrize(
    "points",
    [(), ((2, 1.0),), ((1, 2.0),), ((1, 1.0), (1, 2.0)), ((1, 1.0), (4, 0.5)), ((1, 1.0), (4, float("inf")))],
)
def test_what_is_no_curve_is_refused(points: tuple[tuple[int, float], ...]) -> None:
    with pytest.raises(ValueError, match="cost curve"):
        CostCurve(points)


@pytest.mark.parametrize(
    ("reached", "costs", "length"),
    [
        pytest.param([], CostCurve.linear(0.1), 0, id="nothing drafted"),
        pytest.param([1.0] * 50, CostCurve.linear(0.1), 50, id="a sure draft is checked whole"),
        pytest.param([1.0] * 50, CostCurve.linear(1.1), 0, id="unless a row costs more than the pass it saves"),
        pytest.param([0.05, 0.04, 0.03], CostCurve.linear(0.1), 0, id="an unlikely one not at all"),
        pytest.param([0.05, 0.04, 0.03], CostCurve.linear(0.0), 3, id="but where rows cost nothing"),
        # A second row would pay for itself against a single-token pass, but it slows down the first one's gain.
        pytest.param([0.95, 0.15], CostCurve.linear(0.1), 1, id="the rate decides and not the row alone"),
        pytest.param([0.3] * 20, STEPPED, 7, id="as far as a block of rows costs the same"),
        pytest.param(
            [0.01] + [0.0] * 7 + [0.9] * 20, CostCurve.linear(0.02), 28, id="over a dear stretch to a good one"
        ),
    ],
)
def test_how_much_of_a_draft_is_worth_checking(reached: list[float], costs: CostCurve, length: int) -> None:
    assert worthwhile(reached, costs) == length


@given(st.lists(st.floats(0, 1), max_size=40), st.floats(0, 1))
def test_no_other_length_settles_more_for_its_price(chances: list[float], row_cost: float) -> None:
    reached = [1.0]
    for chance in chances:
        reached.append(reached[-1] * chance)
    costs = CostCurve.linear(row_cost)
    rates = [sum(reached[: length + 1]) / costs.of(1 + length) for length in range(len(reached))]
    assert rates[worthwhile(reached[1:], costs)] == pytest.approx(max(rates))


@given(st.lists(st.floats(0.5, 1), min_size=1, max_size=40))
def test_dearer_rows_make_shorter_drafts(chances: list[float]) -> None:
    reached = [1.0]
    for chance in chances:
        reached.append(reached[-1] * chance)
    lengths = [worthwhile(reached[1:], CostCurve.linear(price)) for price in (0.0, 0.05, 0.2, 0.8, 2.0)]
    assert all(cheap >= dear for cheap, dear in pairwise(lengths))
