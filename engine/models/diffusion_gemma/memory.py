"""What a DiffusionGemma checkpoint takes in each precision, told from its headers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch

from engine.models.diffusion_gemma.assembly import is_packed
from engine.models.diffusion_gemma.checkpoint import StoredTensor
from engine.models.memory import MemoryEstimate, canvas_work
from engine.runtime.weight_only import Bits, packed_bytes

PRECISIONS: Mapping[str, tuple[torch.dtype, Bits | None]] = {
    "fp32": (torch.float32, None),
    "bf16": (torch.bfloat16, None),
    "int8": (torch.bfloat16, 8),
    "int4": (torch.bfloat16, 4),
}


def weight_bytes(index: Mapping[str, StoredTensor], precision: str) -> int:
    """Bytes of all weights in `precision`."""
    dtype, bits = PRECISIONS[precision]
    size = 0
    for name, tensor in index.items():
        if bits is not None and is_packed(name):
            rows = prod(tensor.shape[:-1])
            size += packed_bytes(rows, tensor.shape[-1], bits, dtype.itemsize)
        else:
            size += tensor.values * dtype.itemsize
    return size


def estimates(
    index: Mapping[str, StoredTensor], *, cache_values: int, canvas_length: int, vocab_size: int
) -> dict[str, MemoryEstimate]:
    """What loading and running the checkpoint takes in each precision. cache_values: numbers all full caches hold."""
    largest = max((tensor.values * tensor.dtype.itemsize for tensor in index.values()), default=0)
    work = canvas_work(canvas_length, vocab_size, largest)
    return {
        precision: MemoryEstimate(weight_bytes(index, precision), cache_values * dtype.itemsize, work)
        for precision, (dtype, _) in PRECISIONS.items()
    }
