"""Files of converted weights: safetensors whose tensors begin on cache lines, read by mapping them.

Nothing is copied on reading: pages come from the disk, or from what the system still holds of it, when they are first
used, and processes that serve the same model share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save

ALIGNMENT = 64
_LENGTH_BYTES = 8


def save_weights(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write `tensors`, the data of the file starting at a multiple of `ALIGNMENT`. Raises OSError.

    Safetensors orders tensors by the size of their values, so the small ones lie in front, and allows spaces behind the
    header; tensors whose sizes are multiples of `ALIGNMENT` are all aligned then, and the others merely slower.
    """
    content = memoryview(save(dict(tensors)))
    begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    padding = -begin % ALIGNMENT
    with path.open("wb") as file:
        file.write((begin - _LENGTH_BYTES + padding).to_bytes(_LENGTH_BYTES, "little"))
        file.write(content[_LENGTH_BYTES:begin])
        file.write(b" " * padding)
        file.write(content[begin:])


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of a file, mapped: not to be written to. Raises SafetensorError, OSError."""
    with safe_open(path, framework="pt") as stored:
        return {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
