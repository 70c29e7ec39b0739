"""Weights in 8 and 4 bits: how far from the dense ones, how large, and experts fused into one tensor."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch.nn import functional

from engine.runtime.weight_only import PackedExperts, PackedLinear, PackedWeight, group_of, packed_bytes

Bits = Literal[8, 4]


def packed(dense: torch.Tensor, bits: Bits, dtype: torch.dtype = torch.float32) -> PackedWeight:
    weight = PackedWeight(tuple(dense.shape), bits, dtype, "cpu")
    weight.pack(dense)
    return weight


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("bits", "steps"), [(8, 127), (4, 7)])
def test_every_value_is_within_half_a_step(bits: Bits, steps: int) -> None:
    dense = noise(6, 128) * torch.tensor([1e-3, 1, 50, 1, 1, 1])[:, None]
    columns = 128 if bits == 8 else group_of(128)
    step = dense.view(6, -1, columns).abs().amax(dim=-1, keepdim=True) / steps
    error = (packed(dense, bits).dense(torch.float32) - dense).view(6, -1, columns).abs()
    assert (error <= step * 0.501).all()
    assert error.max() > 0


@pytest.mark.parametrize("bits", [8, 4])
def test_values_on_the_grid_come_back_exactly(bits: Bits) -> None:
    whole = torch.randint(-7, 8, (5, 96), generator=torch.Generator().manual_seed(1)).float()
    whole[:, ::32] = 7 if bits == 4 else 127
    dense = whole * 0.125
    assert torch.equal(packed(dense, bits).dense(torch.float32), dense)


@pytest.mark.parametrize("bits", [8, 4])
def test_rows_of_zeros_stay_zeros(bits: Bits) -> None:
    dense = noise(3, 64)
    dense[1] = 0
    found = packed(dense, bits, torch.bfloat16).dense(torch.bfloat16)
    assert found[1].eq(0).all()
    assert found.isfinite().all()


@pytest.mark.parametrize(("bits", "shape"), [(8, (3, 10)), (4, (3, 10)), (4, (2, 3, 192)), (8, (2, 3, 7))])
def test_sizes_are_as_foretold(bits: Bits, shape: tuple[int, ...]) -> None:
    weight = packed(noise(*shape), bits, torch.bfloat16)
    rows = torch.Size(shape[:-1]).numel()
    assert weight.packed.nbytes + weight.scale.nbytes == packed_bytes(rows, shape[-1], bits, 2)


def test_a_stack_is_packed_matrix_by_matrix() -> None:
    dense = noise(3, 4, 64)
    stack = packed(dense, 4)
    for index in range(3):
        assert torch.equal(stack.dense(torch.float32, index), packed(dense[index], 4).dense(torch.float32))


def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(ValueError, match="pairs"):
        PackedWeight((4, 7), 4, torch.float32, "cpu")
    with pytest.raises(ValueError, match="shape"):
        PackedWeight((4, 8), 4, torch.float32, "cpu").pack(noise(4, 6))


def test_a_linear_layer_multiplies_with_the_dense_weight() -> None:
    weight = packed(noise(5, 64), 4)
    rows = noise(2, 3, 64, seed=2)
    assert torch.equal(PackedLinear(weight)(rows), functional.linear(rows, weight.dense(torch.float32)))


@pytest.mark.parametrize("bits", [8, 4])
def test_packed_experts_compute_what_transformers_experts_do_with_the_same_weights(bits: Bits) -> None:
    from transformers import DiffusionGemmaTextConfig
    from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaTextExperts

    config = DiffusionGemmaTextConfig(
        hidden_size=64, moe_intermediate_size=32, num_experts=4, top_k_experts=2, num_hidden_layers=1
    )
    theirs = DiffusionGemmaTextExperts(config)
    mine = PackedExperts(packed(noise(4, 64, 64), bits), packed(noise(4, 64, 32, seed=3), bits), theirs.act_fn)
    for weight, parameter in ((mine.gate_up, theirs.gate_up_proj), (mine.down, theirs.down_proj)):
        dense = torch.stack([weight.dense(torch.float32, index) for index in range(4)])
        parameter.data = dense
    rows = noise(10, 64, seed=4)
    chosen = torch.stack([torch.randperm(3, generator=torch.Generator().manual_seed(row))[:2] for row in range(10)])
    weights = noise(10, 2, seed=5).softmax(dim=-1)
    with torch.no_grad():
        assert torch.allclose(mine(rows, chosen, weights), theirs(rows, chosen, weights), atol=1e-4)
