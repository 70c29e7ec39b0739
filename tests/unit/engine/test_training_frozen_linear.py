"""Products with frozen matrices: how far int8 is from dense, forwards and backwards, and what it must not hide."""

from __future__ import annotations

import pytest
import torch

from engine.runtime.packed import find_kernel
from engine.training.frozen_linear import DenseFrozenLinear, frozen_linear, quantise_rows
from engine.training.frozen_precision import CANDIDATES, seconds_of

# A row's values are rounded to 127 steps of its largest, which is about three deviations: an error of
# 3 / 127 / sqrt(12) = 0.7 % of a deviation. Both factors have one, the errors are independent: 1 % of the product.
TOLERANCE = {"int8": 0.02, "packed": 0.03}
"""The kernel's weights have 63 steps: 1.4 % of a deviation."""
INTEGER = [
    "int8",
    pytest.param("packed", marks=pytest.mark.skipif(find_kernel() is None, reason="the kernel is not built")),
]


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def products(x: torch.Tensor, weight: torch.Tensor, precision: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The product, and the gradient of its weighted sum."""
    x = x.clone().requires_grad_()
    result = frozen_linear(weight, precision)(x)
    (result * normal(*result.shape, seed=3)).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    return result.detach(), x.grad


def error(measured: torch.Tensor, expected: torch.Tensor) -> float:
    return float((measured - expected).norm() / expected.norm())


@pytest.mark.parametrize("precision", INTEGER)
@pytest.mark.parametrize(("rows", "wide", "narrow"), [(1, 64, 48), (7, 128, 32), (33, 96, 256), (5, 30, 43)])
def test_integers_are_close_to_dense_in_both_directions(rows: int, wide: int, narrow: int, precision: str) -> None:
    x, weight = normal(rows, wide), normal(narrow, wide, seed=1) / wide**0.5
    # Channels of very different size are what one scale per channel is for.
    weight = weight * torch.logspace(-2, 1, narrow)[:, None]
    dense, integer = products(x, weight, "fp32"), products(x, weight, precision)
    assert error(integer[0], dense[0]) < TOLERANCE[precision]
    assert error(integer[1], dense[1]) < TOLERANCE[precision]


@pytest.mark.parametrize("precision", INTEGER)
def test_each_row_has_its_own_scale(precision: str) -> None:
    x = torch.stack([normal(64), normal(64, seed=1) * 1e-4, normal(64, seed=2) * 1e4])
    weight = normal(16, 64, seed=3)
    dense, integer = products(x, weight, "fp32")[0], products(x, weight, precision)[0]
    assert all(error(integer[row], dense[row]) < TOLERANCE[precision] for row in range(3))


@pytest.mark.parametrize("precision", INTEGER)
def test_what_is_zero_stays_zero(precision: str) -> None:
    weight = normal(8, 32)
    weight[3] = 0
    result, gradient = products(torch.zeros(2, 32), weight, precision)
    assert not result.any()
    assert gradient.isfinite().all()
    assert not frozen_linear(weight, precision)(normal(2, 32))[:, 3].any()


@pytest.mark.parametrize("precision", INTEGER)
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_what_is_not_finite_is_not_rounded_away(broken: float, precision: str) -> None:
    x = normal(3, 32)
    x[1, 5] = broken
    result = frozen_linear(normal(8, 32), precision)(x)
    assert not result[1].isfinite().any()
    assert result[[0, 2]].isfinite().all()


def test_rows_are_quantised_to_their_own_largest_value() -> None:
    rows, scale = quantise_rows(torch.tensor([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]))
    assert rows.tolist() == [[64, -127, 32], [0, 0, 0]]
    assert float(scale[0]) == pytest.approx(2 / 127)


def test_bf16_gives_and_takes_float32() -> None:
    x, weight = normal(4, 64), normal(16, 64, seed=1) / 8
    result, gradient = products(x, weight, "bf16")
    dense = products(x, weight, "fp32")
    assert result.dtype == gradient.dtype == torch.float32
    # Eight bits of mantissa: 0.4 % at most for each number, 0.2 % for most.
    assert error(result, dense[0]) < 0.01
    assert error(gradient, dense[1]) < 0.01
    assert torch.equal(DenseFrozenLinear(weight)(x), x @ weight.t())


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="none of packed, int8, fp32, bf16"):
        frozen_linear(torch.zeros(2, 2), "fp8")
    with pytest.raises(ValueError, match="int8 is for the CPU"):
        frozen_linear(torch.zeros(2, 2, device="meta"), "int8")


def test_without_the_kernel_its_layers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.training.frozen_linear.find_kernel", lambda: None)
    with pytest.raises(ValueError, match="build it with a C"):
        frozen_linear(torch.zeros(2, 2), "packed")


@pytest.mark.parametrize("precision", [*INTEGER, *(each for each in CANDIDATES if each not in TOLERANCE)])
def test_every_candidate_s_time_can_be_taken(precision: str) -> None:
    assert 0 < seconds_of(precision) < 60
