"""The lean forward of the Qwen2 shape: a few rows on top of a key-value cache, without gradients.

Owns the arithmetic between the embedding and the last norm. Which weights, which rows and what becomes of the
result is the caller's (`hybrid`). Activations are float32; the linear layers choose their own precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.models.shape import Qwen2Shape
from engine.runtime.attention import RotaryTable, attend
from engine.runtime.cache import KeyValueCache
from engine.runtime.linear import Linear


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer. Norms: [hidden] float32; qkv_bias: [(heads + 2 kv_heads) * head_dim] float32."""

    attention_norm: torch.Tensor
    mlp_norm: torch.Tensor
    qkv_bias: torch.Tensor
    qkv: Linear
    output: Linear
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class Stack:
    """All layers and the norm behind them."""

    layers: tuple[LayerWeights, ...]
    final_norm: torch.Tensor


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Where a step's rows stand. positions: [n] int64; bias: [n, whole blocks of the cache] float32, 0 or -inf."""

    positions: torch.Tensor
    bias: torch.Tensor


def run_stack(
    stack: Stack,
    shape: Qwen2Shape,
    rotary: RotaryTable,
    hidden: torch.Tensor,
    plan: RowPlan,
    cache: KeyValueCache,
    wanted: int,
) -> torch.Tensor:
    """Put the rows' keys and values behind the resident ones and return the last norm of the first `wanted` rows.

    hidden: [n, hidden] float32, the embedded rows. Returns [wanted, hidden] float32. The caller has reserved room
    in the cache and advances it afterwards.
    """
    last = len(stack.layers) - 1
    for index, layer in enumerate(stack.layers):
        query = _query_and_store(layer, index, shape, rotary, hidden, plan, cache)
        bias = plan.bias
        if index == last:
            # Behind the last keys and values only the rows whose logits are wanted matter.
            if wanted == 0:
                return hidden[:0]
            hidden, query, bias = hidden[:wanted], query[:wanted], bias[:wanted]
        keys, values = cache.view(index, bias.shape[1])
        mixed = attend(query, keys, values, bias, shape.head_dim**-0.5)
        hidden = hidden + layer.output(mixed)
        hidden = hidden + _mlp(layer, shape, hidden)
    return _normalised(hidden, stack.final_norm, shape)


def _query_and_store(
    layer: LayerWeights,
    index: int,
    shape: Qwen2Shape,
    rotary: RotaryTable,
    hidden: torch.Tensor,
    plan: RowPlan,
    cache: KeyValueCache,
) -> torch.Tensor:
    fused = layer.qkv(_normalised(hidden, layer.attention_norm, shape)).add_(layer.qkv_bias)
    per_head = fused.view(hidden.shape[0], -1, shape.head_dim)
    rotated = rotary.rotate(per_head[:, : shape.heads + shape.kv_heads], plan.positions)
    cache.put(index, rotated[:, shape.heads :], per_head[:, shape.heads + shape.kv_heads :])
    return rotated[:, : shape.heads]


def _mlp(layer: LayerWeights, shape: Qwen2Shape, hidden: torch.Tensor) -> torch.Tensor:
    gate, up = layer.gate_up(_normalised(hidden, layer.mlp_norm, shape)).chunk(2, dim=-1)
    return layer.down(torch.nn.functional.silu(gate).mul_(up))


def _normalised(hidden: torch.Tensor, weight: torch.Tensor, shape: Qwen2Shape) -> torch.Tensor:
    return torch.nn.functional.rms_norm(hidden, (shape.hidden,), weight, shape.norm_epsilon)
