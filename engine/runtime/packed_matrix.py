"""A quantised matrix as it lies in a file and in memory: `PackedMatrix`, made from dense rows, used as a layer or rows.

The order of the bytes is `packed`'s, the integer scheme and the layers are `linear`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import torch

from engine.runtime.linear import Int8Matrix, quantise_per_channel
from engine.runtime.packed import CHANNELS, corrections, pack, unpack

_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """The matrix whose row k is `weight` k times `scale` k.

    weight: [ceil(out / 8), ceil(in / 4), 8, 4] int8, see `packed.pack`; scale: [out] float32; correction:
    [8 * ceil(out / 8)] int32, see `packed.corrections`, kept because summing weights takes longer than mapping them.
    """

    weight: torch.Tensor
    scale: torch.Tensor
    correction: torch.Tensor

    @classmethod
    def of_rows(cls, pieces: Iterable[torch.Tensor]) -> Self:
        """Of the consecutive rows of a float [out, in] matrix, rounded as `quantise_per_channel` does.

        Every piece but the last has a multiple of 8 rows.
        """
        packed, scales = [], []
        for piece in pieces:
            weight, scale = quantise_per_channel(piece)
            packed.append(pack(weight))
            scales.append(scale)
        return cls(torch.cat(packed), torch.cat(scales), torch.cat([corrections(weight) for weight in packed]))

    def unpacked(self, inputs: int) -> Int8Matrix:
        """int8 [out, inputs] and the scales."""
        return unpack(self.weight, self.scale.shape[0])[:, :inputs], self.scale

    def touch(self) -> None:
        """Have every page of mapped weights in memory, which else the first passes would wait for one by one."""
        self.weight.flatten()[::_PAGE_BYTES].amax()

    def rows(self, ids: torch.Tensor, inputs: int) -> torch.Tensor:
        """Rows `ids` (int64 [n]) as float32 [n, inputs]."""
        rows = self.weight[ids // CHANNELS, :, ids % CHANNELS].flatten(1)[:, :inputs]
        return rows * self.scale[ids, None]
