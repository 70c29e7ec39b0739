"""Weights kept in 8 or 4 bits and made dense for each product: they take less memory, and no less time.

Symmetric rounding to nearest: 8 bits with one scale per output row, 4 bits with one scale per group of inputs (as in
GPTQ's and AWQ's storage, without their calibration). Works on any device, also for experts fused into one tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

Bits = Literal[8, 4]
_GROUP = 64


def group_of(columns: int) -> int:
    """Inputs that share a scale at 4 bits: the largest power of two up to 64 that divides `columns`."""
    return math.gcd(columns, _GROUP)


def packed_bytes(rows: int, columns: int, bits: Bits, scale_bytes: int) -> int:
    """Bytes of a packed [rows, columns] matrix whose scales take `scale_bytes` each."""
    scales = 1 if bits == 8 else columns // group_of(columns)
    return rows * (columns * bits // 8 + scales * scale_bytes)


class PackedWeight(nn.Module):
    """A weight [..., rows, columns] in 8 or 4 bits. Buffers of zeros until `pack`.

    Raises ValueError for an odd number of columns at 4 bits.
    """

    packed: torch.Tensor
    scale: torch.Tensor

    def __init__(self, shape: tuple[int, ...], bits: Bits, dtype: torch.dtype, device: torch.device | str) -> None:
        super().__init__()
        *outer, columns = shape
        if bits == 4 and columns % 2:
            raise ValueError(f"{columns} columns cannot be packed in pairs")
        self.bits = bits
        self.shape = shape
        self._groups = 1 if bits == 8 else columns // group_of(columns)
        stored = torch.zeros(
            (*outer, columns * bits // 8), dtype=torch.int8 if bits == 8 else torch.uint8, device=device
        )
        self.register_buffer("packed", stored, persistent=False)
        self.register_buffer("scale", torch.zeros((*outer, self._groups), dtype=dtype, device=device), persistent=False)

    def pack(self, dense: torch.Tensor) -> None:
        """Take over a float weight of this shape, one matrix at a time so that little more memory is needed."""
        if tuple(dense.shape) != self.shape:
            raise ValueError(f"a weight of shape {tuple(dense.shape)} is not {self.shape}")
        if dense.dim() == 2:
            self._pack_matrix(dense, self.packed, self.scale)
            return
        for index in range(dense.shape[0]):
            self._pack_matrix(dense[index], self.packed[index], self.scale[index])

    def dense(self, dtype: torch.dtype, index: int | None = None) -> torch.Tensor:
        """The weight, or one matrix of a stack of them, as [rows, columns] of `dtype`."""
        packed, scale = (self.packed, self.scale) if index is None else (self.packed[index], self.scale[index])
        if self.bits == 4:
            packed = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2).to(torch.int8) - 8
        grouped: torch.Tensor = _grouped(packed, self._groups).to(dtype) * scale.to(dtype).unsqueeze(-1)
        return grouped.flatten(-2)

    def _pack_matrix(self, dense: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor) -> None:
        grouped = _grouped(dense.to(packed.device, torch.float32), self._groups)
        limit = 127 if self.bits == 8 else 7
        step = (grouped.abs().amax(dim=-1) / limit).clamp_min(torch.finfo(torch.float32).tiny)
        # The scale is rounded first, so that what is rounded to is what will be multiplied with.
        scale.copy_(step)
        step = scale.float().clamp_min(torch.finfo(scale.dtype).tiny)
        whole = (grouped / step.unsqueeze(-1)).round_().clamp_(-limit, limit).flatten(-2)
        if self.bits == 8:
            packed.copy_(whole)
            return
        pairs = (whole + 8).to(torch.uint8).reshape(whole.shape[0], -1, 2)
        packed.copy_(pairs[..., 0] | (pairs[..., 1] << 4))


class PackedLinear(nn.Module):
    """A linear layer without bias over a packed weight."""

    def __init__(self, weight: PackedWeight) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[..., in] to [..., out] of the same dtype."""
        return functional.linear(rows, self.weight.dense(rows.dtype))


class PackedExperts(nn.Module):
    """Gated experts over packed stacks: gate_up [experts, 2 * inner, hidden], down [experts, hidden, inner].

    activate: the gate's activation.
    """

    def __init__(
        self, gate_up: PackedWeight, down: PackedWeight, activate: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        super().__init__()
        self.gate_up = gate_up
        self.down = down
        self._activate = activate

    def forward(self, rows: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """The weighted sum of each row's chosen experts. rows: [n, hidden]; chosen, weights: [n, k]."""
        total = torch.zeros_like(rows)
        for expert in torch.unique(chosen).tolist():
            row, slot = torch.where(chosen == expert)
            gate, up = functional.linear(rows[row], self.gate_up.dense(rows.dtype, expert)).chunk(2, dim=-1)
            out = functional.linear(self._activate(gate) * up, self.down.dense(rows.dtype, expert))
            total.index_add_(0, row, (out * weights[row, slot, None]).to(total.dtype))
        return total


def _grouped(rows: torch.Tensor, groups: int) -> torch.Tensor:
    """[..., columns] as [..., groups, columns of a group]."""
    return rows.reshape(*rows.shape[:-1], groups, -1)
