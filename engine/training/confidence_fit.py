"""What a mask's own probability is worth, fitted on held-out gaps: `fit_confidence`. Pure.

A logistic fit by depth (Platt 1999), pulled towards the probability as it stands where there is little to learn from.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.diffusion.confidence import MaskConfidence
from engine.training.held_out import MaskScore, gains

_PULL = 2.0
"""How strongly scale and shift are held to 1 and 0, in units of one sample's curvature."""
_STEPS = 25
_LEAST_GAIN = 0.01


def fit_confidence(masks: Sequence[MaskScore], deepest: int = 8) -> MaskConfidence:
    """Scale, shift and gain by depth, for depths that masks were kept at.

    Only masks whose forerunners were all kept count, as only those are checked. Raises ValueError without masks.
    """
    if not masks:
        raise ValueError("there are no masks to learn their worth from: score some held-out gaps")
    worth = gains(masks, deepest)
    useful = max(1, sum(1 for gain in worth if gain >= _LEAST_GAIN))
    fits = [
        _logistic([mask for mask in masks if mask.depth == depth and mask.reached]) for depth in range(1, useful + 1)
    ]
    scale, shift = zip(*fits, strict=True)
    return MaskConfidence(tuple(scale), tuple(shift), tuple(round(gain, 4) for gain in worth[:useful]))


def _logistic(masks: Sequence[MaskScore]) -> tuple[float, float]:
    """Scale and shift that make sigmoid(scale * logit(p) + shift) likeliest, by Newton's method."""
    probability = torch.tensor([mask.probability for mask in masks], dtype=torch.float64).clamp(1e-6, 1 - 1e-6)
    kept = torch.tensor([float(mask.agrees) for mask in masks], dtype=torch.float64)
    inputs = torch.stack([probability.logit(), torch.ones_like(probability)], dim=1)
    neutral = torch.tensor([1.0, 0.0], dtype=torch.float64)
    weights = neutral.clone()
    for _ in range(_STEPS):
        chance = torch.sigmoid(inputs @ weights)
        gradient = inputs.t() @ (chance - kept) + _PULL * (weights - neutral)
        curvature = (inputs * (chance * (1 - chance))[:, None]).t() @ inputs + _PULL * torch.eye(2, dtype=torch.float64)
        weights = weights - torch.linalg.solve(curvature, gradient)
    scale, shift = weights.tolist()
    # A fit that turns the order round is noise: a likelier token is not less likely to be kept.
    return (round(max(scale, 0.0), 4), round(shift, 4))
