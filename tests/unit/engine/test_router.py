"""The router's decision as a table."""

from __future__ import annotations

import pytest

from engine.diffusion.denoise import Gap
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.router import cost_ratio, decide

CHEAP_WIDTH = ((1, 60.0), (8, 70.0), (16, 120.0), (32, 170.0))
DEAR_WIDTH = ((1, 20.0), (8, 140.0), (16, 300.0), (32, 600.0))
FILL = Gap(pending=1, adapted=True)
EDIT = Gap(pending=1, adapted=False, warm=(1, 2, 3))


@pytest.mark.parametrize(
    ("gap", "costs", "can_draft", "route", "masks", "warm_start"),
    [
        pytest.param(EDIT, CHEAP_WIDTH, False, "diffusion", False, True, id="an edit drafts from its text"),
        pytest.param(EDIT, DEAR_WIDTH, False, "causal", False, False, id="an edit where width is dear"),
        pytest.param(FILL, CHEAP_WIDTH, True, "diffusion", True, True, id="a fill with a trained drafter"),
        pytest.param(FILL, CHEAP_WIDTH, False, "diffusion", False, True, id="a fill without one looks up repeats"),
        pytest.param(FILL, DEAR_WIDTH, True, "causal", False, False, id="a fill where width is dear"),
        pytest.param(FILL, (), True, "diffusion", True, True, id="nothing measured yet"),
    ],
)
def test_route(
    gap: Gap, costs: tuple[tuple[int, float], ...], can_draft: bool, route: str, masks: bool, warm_start: bool
) -> None:
    decision = decide(gap, VerifyConfig(), costs, can_draft=can_draft)
    assert (decision.route, decision.config.masks, decision.config.warm_start) == (route, masks, warm_start)
    assert decision.reason


def test_the_configuration_carries_what_a_row_costs_here() -> None:
    assert decide(FILL, VerifyConfig(), CHEAP_WIDTH, can_draft=True).config.row_cost == pytest.approx(10 / 60 / 7)
    assert decide(FILL, VerifyConfig(), (), can_draft=True).config.row_cost == VerifyConfig().row_cost


def test_drafting_switched_off_is_causal() -> None:
    assert decide(EDIT, CAUSAL, CHEAP_WIDTH, can_draft=True).route == "causal"


def test_cost_is_interpolated_between_measured_points_and_flat_beyond() -> None:
    assert cost_ratio(CHEAP_WIDTH, 1) == 1.0
    assert cost_ratio(CHEAP_WIDTH, 12) == pytest.approx((70 + 50 / 2) / 60)
    assert cost_ratio(CHEAP_WIDTH, 999) == pytest.approx(170 / 60)
    assert cost_ratio((), 8) == 1.0


def test_unknown_sampling_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="widht"):
        VerifyConfig.from_mapping({"widht": 4})


@pytest.mark.parametrize(
    "values",
    [
        {"width": -1},
        {"ngram_min": 0},
        {"prompt_chunk": 0},
        {"row_cost": -0.5},
        {"row_cost": float("nan")},
        {"mask_width": -1},
    ],
)
def test_sampling_values_out_of_range_are_errors(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        VerifyConfig.from_mapping(values)
