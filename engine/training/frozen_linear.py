"""Matrices that are not trained: their product and their input's gradient, in 8-bit integers where that is faster.

Owns the arithmetic of frozen weights during training. Rows are scaled by their own largest value in both directions,
as in SwitchBack (Wortsman et al. 2023, arXiv 2304.13013); the weights have no gradient, so nothing else is needed.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from engine.runtime.linear import quantise_per_channel
from engine.runtime.packed import Kernel, PackedInt8Linear, find_kernel, pack

_LEVELS = 127


class FrozenLinear(Protocol):
    """y = x W^T for a W without gradient. x: [n, in] float32; returns [n, out] float32."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...


class DenseFrozenLinear:
    """The plain product, in the weight's own dtype (float32 on a CPU, bfloat16 on a GPU)."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x.to(self._weight.dtype), self._weight).float()


class Int8FrozenLinear:
    """int8 weights per output channel, int8 rows on the way in and on the way back. CPU only.

    Where SwitchBack has one scale for all of a weight, here each output channel has its own; one copy serves both
    products all the same, as the way back multiplies the gradient by those scales before it is rounded.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        """weight: [out, in] float. Raises ValueError for one that is on no CPU."""
        if weight.device.type != "cpu":
            raise ValueError(f"int8 is for the CPU: use bf16 or fp32 on {weight.device}")
        scale = weight.abs().amax(1).float() / _LEVELS
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        self._weight = (weight / scale[:, None]).round_().to(torch.int8)
        self._scale = scale

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = _Int8Product.apply(x, self._weight, self._scale)  # type: ignore[no-untyped-call]
        return product


class _Int8Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        ctx.frozen = (weight, scale)
        rows, row_scale = quantise_rows(x)
        return torch.mul(torch._int_mm(rows, weight.t()), row_scale).mul_(scale)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        weight, scale = ctx.frozen
        rows, row_scale = quantise_rows(gradients[0] * scale)
        return torch.mul(torch._int_mm(rows, weight), row_scale), None, None


class PackedFrozenLinear:
    """The same on the engine's own kernel, with the 7-bit weights it serves; the way back has a second copy.

    weight: [out, in] float on the CPU.
    """

    def __init__(self, weight: torch.Tensor, kernel: Kernel) -> None:
        quantised, self._scale = quantise_per_channel(weight.float())
        ones = torch.ones(weight.shape[1])
        self._forwards = PackedInt8Linear(pack(quantised), self._scale, kernel, columns=weight.shape[1])
        self._backwards = PackedInt8Linear(pack(quantised.t().contiguous()), ones, kernel, columns=weight.shape[0])

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = _PackedProduct.apply(x, self._forwards, self._backwards, self._scale)  # type: ignore[no-untyped-call]
        return product


class _PackedProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, forwards: PackedInt8Linear, backwards: PackedInt8Linear, scale: torch.Tensor
    ) -> torch.Tensor:
        ctx.frozen = (backwards, scale)
        return forwards(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        backwards, scale = ctx.frozen
        return backwards(gradients[0] * scale), None, None, None


def quantise_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row of x [n, k] in -127…127 of its own largest value: (int8 [n, k], float32 scale [n, 1])."""
    largest = torch.maximum(x.amax(-1, keepdim=True), -x.amin(-1, keepdim=True)).clamp_min_(1e-30)
    return (x * (_LEVELS / largest)).round_().to(torch.int8), largest / _LEVELS


def frozen_linear(weight: torch.Tensor, precision: str) -> FrozenLinear:
    """The layer for a dense weight [out, in]; precision "packed", "int8", "fp32" or "bf16".

    Raises ValueError for another, and for "packed" where the engine's kernel is not built or the weight on no CPU.
    """
    match precision:
        case "packed":
            kernel = find_kernel()
            if kernel is None:
                raise ValueError("packed needs the engine's kernel: build it with a C++ compiler, or use fp32")
            return PackedFrozenLinear(weight, kernel)
        case "int8":
            return Int8FrozenLinear(weight)
        case "fp32":
            return DenseFrozenLinear(weight.float())
        case "bf16":
            return DenseFrozenLinear(weight.bfloat16())
    raise ValueError(f"precision {precision!r} is none of packed, int8, fp32, bf16")
