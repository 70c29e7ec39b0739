"""softmax and what comes of it on the way, and draws, on the project's own kernel.

For whole canvases, whose steps read many rows: torch takes eight passes over them for the same, and that is most of
what a step costs besides the model's forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.runtime.packed import Kernel


@dataclass(frozen=True, slots=True)
class Peaks:
    """Of m rows. likeliest: [m] int64, the first of the largest. best: [m] float32, its probability. entropy: [m]
    float32, nats, at least 0. NaN, and 0 for likeliest, where a row holds NaN, +inf or nothing finite."""

    likeliest: torch.Tensor
    best: torch.Tensor
    entropy: torch.Tensor


def softmax(logits: torch.Tensor, probs: torch.Tensor, kernel: Kernel) -> Peaks:
    """Write the softmax of [m, width] float32 logits into `probs`, both contiguous on the CPU and apart.

    Raises ValueError for tensors of another kind.
    """
    rows, width = _rows_of(logits)
    if _rows_of(probs) != (rows, width):
        raise ValueError(f"probabilities of {tuple(probs.shape)} for logits of {tuple(logits.shape)}")
    peaks = Peaks(torch.empty(rows, dtype=torch.int64), torch.empty(rows), torch.empty(rows))
    kernel.module.softmax(
        kernel.index,
        logits.data_ptr(),
        rows,
        width,
        probs.data_ptr(),
        peaks.likeliest.data_ptr(),
        peaks.best.data_ptr(),
        peaks.entropy.data_ptr(),
        torch.get_num_threads(),
    )
    return peaks


def drawn(probs: torch.Tensor, dice: torch.Tensor, top_p: float, kernel: Kernel) -> torch.Tensor:
    """[m] int64, drawn from the nucleus of `top_p` of each row of [m, width] float32 probabilities; 1 for all ids.

    dice: [m, tries] float32 in [0, 1). -1 where they did not suffice, some place within a row of no usable numbers.
    Raises ValueError for tensors that are not contiguous float32 on the CPU.
    """
    rows, width = _rows_of(probs)
    count, tries = _rows_of(dice)
    if count != rows:
        raise ValueError(f"dice for {count} rows of {rows}")
    places = torch.empty(rows, dtype=torch.int64)
    sizes, threads = (probs.data_ptr(), rows, width), torch.get_num_threads()
    kernel.module.drawn(kernel.index, *sizes, dice.data_ptr(), tries, top_p, places.data_ptr(), threads)
    return places


def _rows_of(tensor: torch.Tensor) -> tuple[int, int]:
    if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or not tensor.is_contiguous() or tensor.dim() != 2:
        raise ValueError(f"contiguous [m, width] float32 on the CPU expected, not {tuple(tensor.shape)} {tensor.dtype}")
    return tensor.shape[0], tensor.shape[1]
