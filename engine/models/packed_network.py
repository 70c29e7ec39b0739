"""A whole pass through the layers in one call of the int8 kernel: `PackedStack`.

Does what `network.run_stack` does, for stacks whose matrices are all packed: without Python, torch and their threads
between the layers. Owns the table that tells the kernel where everything lies. Attention and norms are in float32, in
an order that depends on a row's own place only: a row's result is bit-identical whatever rows are beside it.
"""

from __future__ import annotations

import torch

from engine.models.network import LayerWeights, RowPlan, Stack
from engine.models.shape import PARTS, Qwen2Shape
from engine.runtime.attention import RotaryTable
from engine.runtime.cache import KeyValueCache
from engine.runtime.linear import Linear, LowRankLinear
from engine.runtime.packed import Kernel, PackedInt8Linear

_LANES = 8
_NO_MATRIX = (0,) * 6


class PackedStack:
    """All layers of a stack and the norm behind them. Raises ValueError unless `kernel_of` finds a kernel for it."""

    def __init__(self, stack: Stack, shape: Qwen2Shape) -> None:
        kernel = kernel_of(stack, shape)
        if kernel is None:
            raise ValueError("not every matrix of this stack is packed, or its sizes are not whole vectors")
        self._stack = stack
        # The kernel reads norms and biases where they lie, too.
        self._small = [tuple(tensor.contiguous() for tensor in _small(layer)) for layer in stack.layers]
        self._final_norm = stack.final_norm.contiguous()
        rows = [_described(layer, *small) for layer, small in zip(stack.layers, self._small, strict=True)]
        self._table = torch.tensor(rows, dtype=torch.int64)
        self._run = kernel.module.layers
        self._kernel = kernel.index
        self._hidden = shape.hidden
        self._shape = (
            shape.hidden,
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            shape.intermediate,
            shape.norm_epsilon,
        )

    def run(
        self, rotary: RotaryTable, hidden: torch.Tensor, plan: RowPlan, cache: KeyValueCache, wanted: int
    ) -> torch.Tensor:
        """See `network.run_stack`."""
        hidden, bias = hidden.contiguous(), plan.bias.contiguous()
        cosine, sine = rotary.angles(plan.positions)
        result = torch.empty(wanted, self._hidden)
        self._run(
            self._kernel,
            self._table.data_ptr(),
            len(self._table),
            self._final_norm.data_ptr(),
            *self._shape,
            cache.storage.data_ptr(),
            cache.capacity,
            cache.length,
            hidden.data_ptr(),
            hidden.shape[0],
            cosine.data_ptr(),
            sine.data_ptr(),
            bias.data_ptr(),
            bias.shape[1],
            wanted,
            result.data_ptr(),
            torch.get_num_threads(),
        )
        return result


def kernel_of(stack: Stack, shape: Qwen2Shape) -> Kernel | None:
    """The kernel that can run the stack: that of its matrices, if all are packed and all sizes are whole vectors."""
    halves = (shape.head_dim // 2, shape.hidden, shape.intermediate)
    if any(size % _LANES for size in halves) or shape.head_dim % 2:
        return None
    kernels = [_kernel(getattr(layer, part)) for layer in stack.layers for part in PARTS]
    return kernels[0] if kernels and all(kernel is not None for kernel in kernels) else None


def _kernel(linear: Linear) -> Kernel | None:
    if isinstance(linear, LowRankLinear):
        factors = (linear.base, linear.down, linear.up)
        return _kernel(linear.base) if all(isinstance(factor, PackedInt8Linear) for factor in factors) else None
    return linear.kernel if isinstance(linear, PackedInt8Linear) else None


def _small(layer: LayerWeights) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return layer.attention_norm, layer.mlp_norm, layer.qkv_bias


def _described(
    layer: LayerWeights, attention_norm: torch.Tensor, mlp_norm: torch.Tensor, qkv_bias: torch.Tensor
) -> list[int]:
    numbers = [attention_norm.data_ptr(), mlp_norm.data_ptr()]
    for part in PARTS:
        numbers += _part(getattr(layer, part), qkv_bias if part == "qkv" else None)
    return numbers


def _part(linear: Linear, bias: torch.Tensor | None) -> list[int]:
    """A matrix and the two factors of the patch beside it, or zeros."""
    if isinstance(linear, LowRankLinear):
        return [*_matrix(linear.base, bias), *_matrix(linear.down, None), *_matrix(linear.up, None)]
    return [*_matrix(linear, bias), *_NO_MATRIX, *_NO_MATRIX]


def _matrix(linear: Linear, bias: torch.Tensor | None) -> tuple[int, ...]:
    if not isinstance(linear, PackedInt8Linear):
        raise TypeError(f"not a packed layer: {type(linear).__name__}")
    return linear.described(bias)
