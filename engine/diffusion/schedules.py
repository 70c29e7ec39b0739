"""Schedules over the steps of a canvas: the temperature, and how many places are due to be settled. Pure."""

from __future__ import annotations

import math

import torch

from engine.diffusion.sampling import Schedule


def temperatures(start: float, end: float, steps: int) -> tuple[float, ...]:
    """The temperature of each of `steps` steps: end + (start - end) * remaining / steps, remaining from steps to 1.

    So the first step has `start` and the last one nearly `end`, as DiffusionGemma was tuned. Rounded as float32
    computes it there, so that the same logits give the same draws.
    """
    remaining = torch.arange(steps, 0, -1, dtype=torch.int32)
    values: list[float] = (end + (start - end) * (remaining / steps)).tolist()
    return tuple(values)


def share_settled(schedule: Schedule, step: int, steps: int) -> float:
    """The share of places settled when `step` of `steps` steps are done, from 0 to 1; 1 from the last step on.

    cosine: few at first, when little is known, and many at the end (MaskGIT, Chang et al. 2022, arXiv 2202.04200).
    `adaptive` has no share of its own; what must be finished in time goes linearly.
    """
    if step >= steps:
        return 1.0
    passed = step / steps
    return 1 - math.cos(passed * math.pi / 2) if schedule == "cosine" else passed


def due(schedule: Schedule, step: int, steps: int, places: int, settled: int) -> int:
    """How many more of `places` are to be settled in the step after `step` done ones; at least 1 while any is free.

    Of `adaptive` it is the least that still finishes in time: the free places spread over the steps left.
    """
    free = places - settled
    if free <= 0:
        return 0
    if schedule == "adaptive":
        return math.ceil(free / max(1, steps - step))
    target = math.ceil(places * share_settled(schedule, step + 1, steps) - 1e-9)
    return min(free, max(1, target - settled))
