"""Whether a model fits before it is loaded: what it will take, told from its files' headers, against what is free.

Running out while loading takes other programs down with it, so what cannot fit is refused first. A family says what a
precision takes (`MemoryEstimate`); which one is loaded, and what is said when none fits, is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import psutil
import torch

from engine.models.safetensors_header import shapes_in
from engine.protocol.errors import EngineError

BYTES_PER_VALUE = {"fp32": 4, "bf16": 2, "fp16": 2}
# A step holds the logits of all candidates for a gap, and for one of them what is computed from them: float32 each.
_CANDIDATES, _READINGS = 6, 2
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


def canvas_work(places: int, vocab_size: int, largest_tensor: int = 0) -> int:
    """Bytes of the work on canvases of so many places. The largest tensor counts as work: it is read whole."""
    return max((_CANDIDATES + _READINGS) * 4 * places * vocab_size, largest_tensor)


def free_bytes(device: str) -> int:
    """Bytes that are free on `device` now."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    return int(psutil.virtual_memory().available)


def fitting_precision(
    name: str, wanted: Sequence[str], sizes: Mapping[str, MemoryEstimate], free: int, device: str
) -> str:
    """The first of the `wanted` precisions that fits into `free` bytes. sizes: of every precision there is.

    Raises EngineError(out_of_memory) when none does, naming the precisions that would.
    """
    for precision in wanted:
        if sizes[precision].total <= free:
            return precision
    tried = sizes[wanted[-1]]
    fitting = [f"{kind} ({_gb(size.total)})" for kind, size in sizes.items() if size.total <= free]
    least = min(sizes, key=lambda kind: sizes[kind].total)
    remedy = (
        f"load it in less: {' or '.join(fitting)} would fit"
        if fitting
        else "free memory, or use another device or a smaller model: "
        f"even in {least} it needs {_gb(sizes[least].total)}"
    )
    raise EngineError(
        "out_of_memory",
        f"{name} needs about {_gb(tried.total)} in {wanted[-1]} ({_gb(tried.weights)} of weights), "
        f"and {_gb(free)} are free on {device}",
        remedy,
    )


def values_in(folder: Path) -> int:
    """How many numbers the safetensors files of `folder` hold, by their headers. Raises EngineError(model_corrupt)."""
    return sum(_values_in_file(file) for file in sorted(folder.glob("*.safetensors")))


def _values_in_file(file: Path) -> int:
    try:
        return sum(map(prod, shapes_in(file).values()))
    except (OSError, ValueError) as fault:
        raise EngineError("model_corrupt", f"{file} has no header that can be read", "fetch it again") from fault


def _gb(size: int) -> str:
    return f"{size / _GB:.1f} GB" if size >= _GB / 10 else f"{size / 10**6:.1f} MB"
