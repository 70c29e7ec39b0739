"""The worth of masks' probabilities: recovered from samples with a known worth, and sound with few of them."""

from __future__ import annotations

import math
from random import Random

import pytest

from engine.training.confidence_fit import fit_confidence
from engine.training.held_out import MaskScore


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def samples(scale: float, shift: float, count: int, depth: int = 1) -> list[MaskScore]:
    """Masks that are kept as often as sigmoid(scale * logit(p) + shift) says."""
    dice = Random(depth)
    drawn = []
    for _ in range(count):
        probability = dice.uniform(0.02, 0.98)
        chance = sigmoid(scale * math.log(probability / (1 - probability)) + shift)
        drawn.append(MaskScore(depth, dice.random() < chance, True, probability))
    return drawn


def test_a_known_worth_is_recovered_by_depth() -> None:
    fitted = fit_confidence(samples(0.7, 0.4, 6000) + samples(1.3, -0.5, 6000, depth=2))
    assert fitted.scale == pytest.approx((0.7, 1.3), abs=0.12)
    assert fitted.shift == pytest.approx((0.4, -0.5), abs=0.12)
    assert fitted.kept(0, 0.6) == pytest.approx(sigmoid(0.7 * math.log(1.5) + 0.4), abs=0.03)


def test_masks_behind_a_refused_one_teach_nothing_about_the_worth() -> None:
    honest = samples(1.0, 0.0, 500)
    noise = [MaskScore(1, False, False, 0.99)] * 500
    assert fit_confidence(honest + noise).scale == fit_confidence(honest).scale


def test_few_masks_leave_the_probability_as_it_stands() -> None:
    fitted = fit_confidence([MaskScore(1, True, True, 0.7), MaskScore(1, False, True, 0.3)])
    assert fitted.kept(0, 0.7) == pytest.approx(0.7, abs=0.15)
    certain = fit_confidence([MaskScore(1, True, True, 1.0)])
    assert all(math.isfinite(value) for value in (*certain.scale, *certain.shift))


def test_gains_are_of_whole_runs_and_end_where_nothing_is_kept() -> None:
    masks = [MaskScore(1, True, True, 0.9), MaskScore(2, False, True, 0.9), MaskScore(3, True, False, 0.9)]
    assert fit_confidence([*masks, MaskScore(1, False, True, 0.2)]).gains == (0.5,)


def test_a_worth_that_falls_with_the_probability_is_taken_for_none() -> None:
    upside_down = [MaskScore(1, p < 0.5, True, p) for p in (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)] * 50
    fitted = fit_confidence(upside_down)
    assert fitted.kept(0, 0.1) == fitted.kept(0, 0.9) == pytest.approx(0.5, abs=0.05)


def test_no_masks_are_refused() -> None:
    with pytest.raises(ValueError, match="no masks to learn"):
        fit_confidence([])
