"""How much memory a checkpoint will take in a precision, told from its headers before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch

from engine.models.diffusion_gemma.assembly import is_packed
from engine.models.diffusion_gemma.checkpoint import StoredTensor
from engine.protocol.errors import EngineError
from engine.runtime.weight_only import Bits, packed_bytes

PRECISIONS: Mapping[str, tuple[torch.dtype, Bits | None]] = {
    "fp32": (torch.float32, None),
    "bf16": (torch.bfloat16, None),
    "int8": (torch.bfloat16, 8),
    "int4": (torch.bfloat16, 4),
}
# A step holds the logits of all candidates for a gap, and for one of them what is computed from them: float32 each.
_CANDIDATES, _READINGS = 6, 3
_GB = 10**9


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes: of the weights as they will be kept, of the caches when full, and of the work on one canvas."""

    weights: int
    caches: int
    work: int

    @property
    def total(self) -> int:
        """All of it at once."""
        return self.weights + self.caches + self.work


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


def estimate(
    index: Mapping[str, StoredTensor], precision: str, *, cache_bytes: int, canvas_length: int, vocab_size: int
) -> MemoryEstimate:
    """What loading and running the checkpoint takes. The largest tensor counts as work: it is read whole."""
    largest = max((tensor.values * tensor.dtype.itemsize for tensor in index.values()), default=0)
    logits = (_CANDIDATES + _READINGS) * 4 * canvas_length * vocab_size
    return MemoryEstimate(weight_bytes(index, precision), cache_bytes, max(logits, largest))


def require_memory(
    name: str,
    index: Mapping[str, StoredTensor],
    precision: str,
    needed: MemoryEstimate,
    free: int,
    device: torch.device,
) -> None:
    """Raise EngineError(out_of_memory) when `needed` exceeds `free` bytes, naming the precisions that would fit."""
    if needed.total <= free:
        return
    other = needed.caches + needed.work
    sizes = {kind: weight_bytes(index, kind) + other for kind in PRECISIONS}
    fitting = [f"{kind} ({_gb(size)})" for kind, size in sizes.items() if size <= free]
    remedy = (
        f"load it in less: {' or '.join(fitting)} would fit"
        if fitting
        else f"free memory, or use another device or a smaller model: even in int4 it needs {_gb(min(sizes.values()))}"
    )
    raise EngineError(
        "out_of_memory",
        f"{name} needs about {_gb(needed.total)} in {precision} ({_gb(needed.weights)} of weights), "
        f"and {_gb(free)} are free on {device}",
        remedy,
    )


def _gb(size: int) -> str:
    return f"{size / _GB:.1f} GB" if size >= _GB / 10 else f"{size / 10**6:.1f} MB"
