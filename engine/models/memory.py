"""Whether a model fits before it is loaded: its size from the headers of its files, against what is free.

Running out while loading takes other programs down with it, so what cannot fit is refused first.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import psutil
import torch

from engine.protocol.errors import EngineError

BYTES_PER_VALUE = {"fp32": 4, "bf16": 2, "fp16": 2}
SPARE = 1.1
"""Caches and activations beside the weights, as a factor of them."""
FIXED_SPARE_BYTES = 200 << 20


def values_in(folder: Path) -> int:
    """How many numbers the safetensors files of `folder` hold, by their headers. Raises EngineError(model_corrupt)."""
    return sum(_values_in_file(file) for file in sorted(folder.glob("*.safetensors")))


def needed_bytes(values: int, precision: str) -> int:
    """Bytes a model of so many numbers takes in that precision; as fp32 where the precision is unknown."""
    return int(values * BYTES_PER_VALUE.get(precision, 4) * SPARE) + FIXED_SPARE_BYTES


def free_bytes(device: str) -> int:
    """Bytes that are free on `device` now."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    return int(psutil.virtual_memory().available)


def fitting_precision(wanted: str, values: int, free: int, device: str) -> str:
    """`wanted`, or for "auto" bf16 on a GPU, on a CPU fp32 where that fits and else bf16, which is slower there.

    Raises EngineError(out_of_memory) when the model does not fit.
    """
    choices = [wanted] if wanted != "auto" else ["bf16"] if device.startswith("cuda") else ["fp32", "bf16"]
    for precision in choices:
        if needed_bytes(values, precision) <= free:
            return precision
    needed = needed_bytes(values, choices[-1])
    smaller = "" if choices[-1] in {"bf16", "fp16"} else "set the precision to bf16, "
    raise EngineError(
        "out_of_memory",
        f"the model needs about {needed / 1e9:.1f} GB as {choices[-1]}, and {free / 1e9:.1f} GB are free on {device}",
        f"close other programs, {smaller}or use a smaller model",
    )


def _values_in_file(file: Path) -> int:
    """Format: 8 bytes of length, little-endian, then a JSON object of tensors by name with their shapes."""
    try:
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        return sum(prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MemoryError, OverflowError) as fault:
        raise EngineError("model_corrupt", f"{file} has no header that can be read", "fetch it again") from fault
