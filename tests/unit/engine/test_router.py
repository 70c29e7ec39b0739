"""The router's decision as a table."""

from __future__ import annotations

import pytest

from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.denoise import Gap
from engine.diffusion.verify_config import CAUSAL, UNMEASURED, VerifyConfig
from engine.router import LONGEST_PASS_MS, NARROWEST, decide, widest

CHEAP_WIDTH = ((1, 60.0), (8, 70.0), (16, 120.0), (32, 170.0), (64, 310.0))
DEAR_WIDTH = ((1, 20.0), (8, 160.0), (16, 320.0), (32, 640.0))
# Rows of a pass of up to eight are nearly free, wider ones as dear as single tokens.
BLOCKS_OF_EIGHT = ((1, 20.0), (8, 22.0), (16, 180.0), (32, 500.0))
SLOW = ((1, 300.0), (8, 420.0), (16, 800.0))
FILL = Gap(pending=1, adapted=True)
EDIT = Gap(pending=1, adapted=False, warm=(1, 2, 3))


@pytest.mark.parametrize(
    ("gap", "costs", "can_draft", "route", "masks", "warm_start", "width"),
    [
        pytest.param(EDIT, CHEAP_WIDTH, False, "diffusion", False, True, 83, id="an edit drafts from its text"),
        pytest.param(EDIT, DEAR_WIDTH, False, "causal", False, False, 0, id="an edit where width is dear"),
        pytest.param(
            EDIT, BLOCKS_OF_EIGHT, False, "diffusion", False, True, 26, id="an edit where some width is cheap"
        ),
        pytest.param(EDIT, SLOW, False, "diffusion", False, True, NARROWEST, id="an edit on a slow machine"),
        pytest.param(FILL, CHEAP_WIDTH, True, "diffusion", True, True, 83, id="a fill with a trained drafter"),
        pytest.param(FILL, CHEAP_WIDTH, False, "diffusion", False, True, 83, id="a fill without one looks up repeats"),
        pytest.param(FILL, DEAR_WIDTH, True, "causal", False, False, 0, id="a fill where width is dear"),
        pytest.param(FILL, (), True, "diffusion", True, True, 96, id="nothing measured yet"),
    ],
)
def test_route(
    gap: Gap,
    costs: tuple[tuple[int, float], ...],
    can_draft: bool,
    route: str,
    masks: bool,
    warm_start: bool,
    width: int,
) -> None:
    decision = decide(gap, VerifyConfig(), costs, can_draft=can_draft)
    config = decision.config
    assert (decision.route, config.masks, config.warm_start, config.width) == (route, masks, warm_start, width)
    assert decision.reason


def test_the_configuration_carries_what_passes_cost_here() -> None:
    assert decide(FILL, VerifyConfig(), CHEAP_WIDTH, can_draft=True).config.costs == CostCurve.measured(CHEAP_WIDTH)
    assert decide(FILL, VerifyConfig(), (), can_draft=True).config.costs == UNMEASURED


def test_drafting_switched_off_is_causal() -> None:
    assert decide(EDIT, CAUSAL, CHEAP_WIDTH, can_draft=True).route == "causal"


def test_a_pass_ends_in_time_for_others() -> None:
    costs = CostCurve.measured(CHEAP_WIDTH)
    assert costs is not None
    width = widest(500, CHEAP_WIDTH, costs)
    assert 60.0 * costs.of(1 + width) <= LONGEST_PASS_MS < 60.0 * costs.of(2 + width)
    assert widest(8, CHEAP_WIDTH, costs) == 8


def test_unknown_sampling_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="widht"):
        VerifyConfig.from_mapping({"widht": 4})


@pytest.mark.parametrize("values", [{"width": -1}, {"ngram_min": 0}, {"prompt_chunk": 0}, {"mask_width": -1}])
def test_sampling_values_out_of_range_are_errors(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        VerifyConfig.from_mapping(values)
