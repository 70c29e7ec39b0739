"""AdamW (Loshchilov and Hutter 2019) with a moving average of the weights, over named parameters.

The average (Polyak) stands in for a learning rate that falls to zero, so that a run may stop at any checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from engine.training.settings_text import require


class DivergedError(ValueError):
    """A loss or a gradient is not finite any more: nothing good can come of going on."""


@dataclass(frozen=True, slots=True)
class OptimiserChoice:
    """learning_rate after `warm_up` steps; clip: largest norm of a step's gradient; average: decay per step.

    Raises ValueError for numbers out of their range.
    """

    learning_rate: float = 4e-4
    warm_up: int = 20
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    clip: float = 1.0
    average: float = 0.99

    def __post_init__(self) -> None:
        require(0 < self.learning_rate < math.inf, "learning_rate must be a positive number")
        require(self.warm_up >= 0, "warm_up must not be negative")
        require([0 <= beta < 1 for beta in self.betas] == [True, True], "betas are two numbers from 0 to below 1")
        require(0 <= self.weight_decay < math.inf, "weight_decay must not be negative")
        require(0 < self.clip < math.inf, "clip must be a positive number")
        require(0 <= self.average < 1, "average must be a number below 1")


class Optimiser:
    """Steps over `parameters`, whose gradients the caller has filled. `average`: float32, on the parameters' device."""

    def __init__(self, parameters: Mapping[str, torch.Tensor], choice: OptimiserChoice) -> None:
        self._parameters = parameters
        self._choice = choice
        self._adam = torch.optim.AdamW(
            list(parameters.values()),
            lr=choice.learning_rate,
            betas=choice.betas,
            weight_decay=choice.weight_decay,
            foreach=False,
        )
        self.average = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        self.step_number = 0

    def restore(
        self,
        step: int,
        average: Mapping[str, torch.Tensor],
        first: Mapping[str, torch.Tensor],
        second: Mapping[str, torch.Tensor],
    ) -> None:
        """Go on from a checkpoint's moments. Raises ValueError for those of other parameters."""
        for stored in (average, first, second):
            require_same_sizes(self._parameters, stored)
        self.step_number = step
        for name, parameter in self._parameters.items():
            self.average[name].copy_(average[name])
            self._adam.state[parameter] = {
                "step": torch.tensor(float(step)),
                "exp_avg": first[name].to(parameter.device).clone(),
                "exp_avg_sq": second[name].to(parameter.device).clone(),
            }

    def moments(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The first and second moments by parameter name; zeros before the first step."""
        first, second = {}, {}
        for name, parameter in self._parameters.items():
            state = self._adam.state.get(parameter, {})
            first[name] = state.get("exp_avg", torch.zeros_like(parameter)).clone()
            second[name] = state.get("exp_avg_sq", torch.zeros_like(parameter)).clone()
        return first, second

    def step(self) -> float:
        """One update from the gradients, which are cleared; returns their norm before clipping.

        Raises DivergedError for gradients that are not finite; the parameters are then as before.
        """
        choice = self._choice
        norm = float(torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), choice.clip, foreach=False))
        if not math.isfinite(norm):
            raise DivergedError(f"the gradient of step {self.step_number + 1} is not finite ({norm})")
        rate = choice.learning_rate * min(1.0, (self.step_number + 1) / max(1, choice.warm_up))
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        self.step_number += 1
        # A young average follows closely: the weights it started from are no better than the first step's.
        decay = min(choice.average, self.step_number / (self.step_number + 10))
        for name, parameter in self._parameters.items():
            self.average[name].lerp_(parameter.detach(), 1 - decay)
        return norm


def require_same_sizes(parameters: Mapping[str, torch.Tensor], stored: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError unless `stored` has the names and sizes of `parameters`."""
    if set(parameters) != set(stored):
        raise ValueError(f"the checkpoint has other parameters ({len(stored)} of them, not {len(parameters)})")
    for name, parameter in parameters.items():
        if parameter.shape != stored[name].shape:
            sizes = f"{tuple(stored[name].shape)}, not {tuple(parameter.shape)}"
            raise ValueError(f"the checkpoint's {name} has size {sizes}: it is a run of another rank or model")
