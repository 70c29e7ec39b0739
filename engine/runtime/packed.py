"""int8 linear layers on the project's own kernel: the layout of packed weights, finding the kernel, the layer.

The kernel is `engine.runtime._int8`, built from `engine/runtime/kernel` where a C++ compiler was at hand; without it,
or on a processor without AVX2, `find_kernel` gives None and `linear` uses what torch has. It does the integer scheme
of `linear`: sums of products are exact, so every kernel, thread count and number of rows gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch

from engine.runtime.extension import kernel_module

CHANNELS = 8
"""Output channels that lie together in a packed matrix."""
INPUTS = 4
"""Inputs of each of them that lie together."""

_INPUT_ZERO = 128


@dataclass(frozen=True, slots=True)
class Kernel:
    """The extension module and the set of instructions to use, by its place in `module.kernels()`."""

    module: ModuleType
    index: int
    name: str


def find_kernels() -> list[Kernel]:
    """The kernels this installation has for this processor, the fastest first; one left from other sources is none."""
    module = kernel_module()
    if module is None:
        return []
    return [Kernel(module, index, name) for index, name in enumerate(module.kernels())]


def find_kernel() -> Kernel | None:
    """The fastest kernel there is, if any."""
    return next(iter(find_kernels()), None)


def pack(weight: torch.Tensor) -> torch.Tensor:
    """[out, in] int8 as [ceil(out / 8), ceil(in / 4), 8, 4]: 32 bytes in a row hold 4 inputs of 8 channels.

    Channels and inputs that are not there are zero. Contiguous, a copy.
    """
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight, (0, -columns % INPUTS, 0, -rows % CHANNELS))
    groups = padded.view(padded.shape[0] // CHANNELS, CHANNELS, padded.shape[1] // INPUTS, INPUTS)
    return groups.permute(0, 2, 1, 3).contiguous()


def unpack(packed: torch.Tensor, rows: int) -> torch.Tensor:
    """The [rows, 4 * packed.shape[1]] int8 that `pack` packed, with its padding of inputs."""
    groups, steps = packed.shape[:2]
    return packed.permute(0, 2, 1, 3).reshape(groups * CHANNELS, steps * INPUTS)[:rows]


def corrections(packed: torch.Tensor) -> torch.Tensor:
    """What the zero point of the inputs adds to each channel's sum: [8 * groups] int32."""
    return packed.sum(dim=(1, 3), dtype=torch.int32).flatten().mul_(_INPUT_ZERO)


class PackedInt8Linear:
    """A `Linear` over packed weights.

    packed: int8 as `pack` makes it, within -63…63, contiguous; scale: [out] float32; columns: the inputs, without
    padding; correction: `corrections(packed)`, where it is known already.
    Raises ValueError for sizes that do not fit each other.
    """

    def __init__(
        self,
        packed: torch.Tensor,
        scale: torch.Tensor,
        kernel: Kernel,
        *,
        columns: int | None = None,
        correction: torch.Tensor | None = None,
    ) -> None:
        rows = scale.shape[0]
        columns = packed.shape[1] * INPUTS if columns is None else columns
        if tuple(packed.shape) != (-(-rows // CHANNELS), -(-columns // INPUTS), CHANNELS, INPUTS):
            raise ValueError(f"{tuple(packed.shape)} is not a packed matrix of {rows} x {columns}")
        correction = corrections(packed) if correction is None else correction
        if correction.shape[0] != packed.shape[0] * CHANNELS:
            raise ValueError(f"{correction.shape[0]} corrections for {packed.shape[0] * CHANNELS} channels")
        self._owned = (
            _laid_out(packed, torch.int8),
            _laid_out(correction, torch.int32),
            _laid_out(scale, torch.float32),
        )
        self.columns = columns
        self.rows = rows
        self.kernel = kernel
        self._multiply = kernel.module.linear
        self._weights = tuple(tensor.data_ptr() for tensor in self._owned)

    def described(self, bias: torch.Tensor | None = None) -> tuple[int, ...]:
        """The matrix as the kernel has it: the addresses of weights, correction, scale and bias, inputs, outputs.

        They hold as long as this layer and `bias`, [out] float32, live.
        """
        return (*self._weights, 0 if bias is None else bias.data_ptr(), self.columns, self.rows)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float32 or x.shape[1] != self.columns:
            raise ValueError(f"[n, {self.columns}] float32 expected, not {tuple(x.shape)} {x.dtype}")
        x = x.contiguous()
        count = x.shape[0]
        result = torch.empty(count, self.rows)
        self._multiply(
            self.kernel.index,
            x.data_ptr(),
            count,
            *self.described(),
            result.data_ptr(),
            torch.get_num_threads(),
        )
        return result


def _laid_out(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if tensor.dtype != dtype or tensor.device.type != "cpu":
        raise ValueError(f"{dtype} on the CPU expected, not {tensor.dtype} on {tensor.device}")
    return tensor.contiguous()
