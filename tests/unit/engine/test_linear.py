"""Linear layers: how near int8 is to dense, and that a row's result is its own."""

from __future__ import annotations

import warnings

import pytest
import torch

from engine.runtime.linear import (
    FloatLinear,
    LowRankLinear,
    int8_is_supported,
    int8_linear,
    int8_linears,
    quantise_per_channel,
)

pytestmark = pytest.mark.filterwarnings("error")


def _random(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def test_quantising_keeps_every_weight_within_half_a_step() -> None:
    weight = _random(40, 96)
    quantised, scale = quantise_per_channel(weight)
    assert quantised.dtype == torch.int8
    error = (quantised.float() * scale[:, None] - weight).abs()
    assert bool((error <= 0.5001 * scale[:, None]).all())


def test_the_largest_sums_do_not_overflow() -> None:
    # Rows of equal extremes are the worst case of the 16-bit sums inside an AVX2 kernel.
    weight = torch.ones(32, 512)
    weight[::2] = -1
    x = torch.ones(2, 512)
    x[1] = -1
    result = int8_linear(*quantise_per_channel(weight))(x)
    torch.testing.assert_close(result, x @ weight.T, rtol=0.01, atol=0)


def test_quantising_a_row_of_zeros_gives_zeros() -> None:
    weight = _random(3, 32)
    weight[1] = 0
    quantised, scale = quantise_per_channel(weight)
    assert not quantised[1].any()
    assert bool((scale > 0).all())


def test_int8_is_within_three_percent_of_dense() -> None:
    weight, x = _random(256, 320), _random(33, 320, seed=1)
    result = int8_linear(*quantise_per_channel(weight))(x)
    assert result.dtype == torch.float32
    assert float((result - x @ weight.T).norm() / (x @ weight.T).norm()) < 0.03


@pytest.mark.parametrize("rows", [2, 3, 8, 17, 64, 131])
def test_a_row_is_bit_identical_whatever_its_neighbours(rows: int) -> None:
    layer = int8_linear(*quantise_per_channel(_random(48, 64)))
    x = _random(rows, 64, seed=rows) * 10 ** _random(rows, 1, seed=rows + 1)
    together = layer(x)
    assert torch.equal(together, torch.cat([layer(x[row : row + 1]) for row in range(rows)]))
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(rows))
    assert torch.equal(together[order], layer(x[order]))


def test_a_vocabulary_sized_matrix_equals_its_parts() -> None:
    weight, scale = quantise_per_channel(_random(25_000, 8))
    x = _random(5, 8, seed=2)
    whole = int8_linear(weight, scale)(x)
    parts = [int8_linear(weight[start : start + 500], scale[start : start + 500])(x) for start in range(0, 25_000, 500)]
    assert torch.equal(whole, torch.cat(parts, dim=1))


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_scale_of_a_row_does_not_change_its_relative_error(factor: float) -> None:
    weight, x = _random(64, 64), _random(1, 64, seed=3)
    layer = int8_linear(*quantise_per_channel(weight))
    torch.testing.assert_close(layer(x * factor) / factor, layer(x), rtol=1e-4, atol=1e-4)


def test_a_row_of_zeros_gives_zeros() -> None:
    layer = int8_linear(*quantise_per_channel(_random(16, 32)))
    assert not layer(torch.zeros(2, 32)).any()


def test_making_layers_leaves_the_process_as_it_was() -> None:
    before = torch.backends.quantized.engine, list(warnings.filters)
    counts: list[int] = []
    pair = quantise_per_channel(_random(16, 32))
    layers = int8_linears([lambda: pair] * 3, packed=counts.append)
    assert (torch.backends.quantized.engine, list(warnings.filters)) == before
    assert len(layers) == 3
    assert counts == [1, 2, 3]


def test_a_fault_while_reading_weights_comes_through() -> None:
    def broken() -> tuple[torch.Tensor, torch.Tensor]:
        raise OSError("the disk left")

    with pytest.raises(OSError, match="the disk left"):
        int8_linears([broken])


def test_this_build_says_whether_it_has_the_kernels() -> None:
    assert int8_is_supported() == ("fbgemm" in torch.backends.quantized.supported_engines)


def test_a_bf16_layer_takes_and_gives_float32() -> None:
    weight, x = _random(24, 32), _random(3, 32, seed=4)
    result = FloatLinear(weight.bfloat16())(x)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, x @ weight.T, rtol=0.05, atol=0.1)


def test_a_low_rank_patch_equals_the_dense_sum() -> None:
    weight, down, up, x = _random(24, 32), _random(4, 32, seed=1), _random(24, 4, seed=2), _random(3, 32, seed=3)
    patched = LowRankLinear(FloatLinear(weight), FloatLinear(down), FloatLinear(up))
    torch.testing.assert_close(patched(x), x @ (weight + up @ down).T, rtol=1e-4, atol=1e-4)
