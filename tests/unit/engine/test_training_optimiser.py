"""Steps, clipping, warm-up and the moving average; going on from stored moments; gradients that are no numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from engine.training.optimiser import DivergedError, Optimiser, OptimiserChoice

CHOICE = OptimiserChoice(learning_rate=0.1, warm_up=3)
NAMES = {"a": (3, 2), "b": (4,)}


def start() -> dict[str, torch.Tensor]:
    dice = torch.Generator().manual_seed(0)
    return {name: torch.randn(size, generator=dice).requires_grad_() for name, size in NAMES.items()}


def step(optimiser: Optimiser, parameters: dict[str, torch.Tensor], number: int, scale: float = 1.0) -> float:
    dice = torch.Generator().manual_seed(100 + number)
    for parameter in parameters.values():
        parameter.grad = torch.randn(parameter.shape, generator=dice) * scale
    return optimiser.step()


def test_a_resumed_run_equals_one_that_never_stopped() -> None:
    whole, parts = start(), start()
    uninterrupted, first = Optimiser(whole, CHOICE), Optimiser(parts, CHOICE)
    for number in range(12):
        step(uninterrupted, whole, number)
    for number in range(5):
        step(first, parts, number)
    stored = (first.step_number, first.average, *first.moments())
    resumed = Optimiser(parts, CHOICE)
    resumed.restore(*stored)
    for number in range(5, 12):
        step(resumed, parts, number)
    for name in NAMES:
        assert torch.equal(whole[name], parts[name])
        assert torch.equal(uninterrupted.average[name], resumed.average[name])
        assert all(
            torch.equal(u[name], r[name]) for u, r in zip(uninterrupted.moments(), resumed.moments(), strict=True)
        )


def test_stored_moments_are_copies() -> None:
    parameters = start()
    optimiser = Optimiser(parameters, CHOICE)
    step(optimiser, parameters, 0)
    first, _ = optimiser.moments()
    before = first["a"].clone()
    step(optimiser, parameters, 1)
    assert torch.equal(first["a"], before)


def test_a_step_is_clipped_and_says_how_long_it_was() -> None:
    updates = []
    for scale in (1.0, 1000.0):
        parameters = start()
        optimiser = Optimiser(parameters, replace(CHOICE, clip=0.5))
        norm = step(optimiser, parameters, 0, scale)
        assert norm == pytest.approx(scale * math.sqrt(sum(float(g.square().sum()) for g in gradients())), rel=1e-4)
        updates.append(optimiser.moments()[0])
        assert all(parameter.grad is None for parameter in parameters.values())
    size = math.sqrt(sum(float(moment.square().sum()) for moment in updates[1].values()))
    assert size == pytest.approx(0.5 * (1 - CHOICE.betas[0]), rel=1e-3)
    assert all(torch.allclose(updates[0][name], updates[1][name], rtol=1e-3) for name in NAMES)


def gradients() -> list[torch.Tensor]:
    dice = torch.Generator().manual_seed(100)
    return [torch.randn(size, generator=dice) for size in NAMES.values()]


def test_the_rate_rises_over_the_warm_up() -> None:
    moved = []
    parameters = start()
    optimiser = Optimiser(parameters, CHOICE)
    for _ in range(5):
        before = parameters["b"].detach().clone()
        # With the same gradient each time, Adam moves every number by the learning rate.
        step(optimiser, parameters, 0)
        moved.append(float((parameters["b"].detach() - before).abs().mean()))
    assert moved == pytest.approx([0.1 / 3, 0.2 / 3, 0.1, 0.1, 0.1], rel=1e-3)


def test_the_average_follows_closely_at_first_and_slowly_later() -> None:
    parameters = start()
    optimiser = Optimiser(parameters, replace(CHOICE, average=0.5))
    expected = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    for number in range(20):
        step(optimiser, parameters, number)
        decay = min(0.5, (number + 1) / (number + 11))
        expected = {name: decay * old + (1 - decay) * parameters[name].detach() for name, old in expected.items()}
    assert all(torch.allclose(optimiser.average[name], expected[name], atol=1e-6) for name in NAMES)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_gradients_that_are_not_finite_change_nothing(broken: float) -> None:
    parameters = start()
    optimiser = Optimiser(parameters, CHOICE)
    step(optimiser, parameters, 0)
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    with pytest.raises(DivergedError, match="gradient of step 2 is not finite"):
        step(optimiser, parameters, 1, broken)
    assert all(torch.equal(parameters[name].detach(), before[name]) for name in NAMES)
    assert optimiser.step_number == 1


def test_moments_of_other_parameters_are_refused() -> None:
    optimiser = Optimiser(start(), CHOICE)
    zeros = {name: torch.zeros(size) for name, size in NAMES.items()}
    with pytest.raises(ValueError, match="other parameters"):
        optimiser.restore(1, {"a": zeros["a"]}, zeros, zeros)
    with pytest.raises(ValueError, match=r"b has size \(5,\), not \(4,\)"):
        optimiser.restore(1, zeros, zeros, zeros | {"b": torch.zeros(5)})


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0.0},
        {"learning_rate": math.nan},
        {"warm_up": -1},
        {"betas": (0.9, 1.0)},
        {"betas": (0.9,)},
        {"betas": (0.9, 0.9, 0.9)},
        {"weight_decay": -0.1},
        {"clip": 0.0},
        {"average": 1.0},
    ],
)
def test_choices_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        OptimiserChoice(**wrong)  # type: ignore[arg-type]
