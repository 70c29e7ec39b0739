"""A run's averaged terms as the adapter file that `engine.models.adapter` reads, with the digest beside it.

Owns the file's size limit and that it appears whole; which terms and what is said of them is the caller's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch

from engine.models.digest import sha256_of_file
from engine.training.checkpoint import save_whole

MOST_BYTES = 40_000_000
"""As much as the package should carry."""


def export_terms(out: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> str:
    """Write fp16 tensors to `out` and `out.sha256`; returns the digest.

    tensors: by the adapter's names, any float dtype. metadata must hold `base_sha256`. Raises ValueError when it does
    not, when the file would be larger than `MOST_BYTES` or a value does not fit fp16; OSError from the disk.
    """
    if "base_sha256" not in metadata:
        raise ValueError("the adapter must say in `base_sha256` which model file it belongs to")
    halves = {name: tensor.detach().cpu().half().contiguous() for name, tensor in tensors.items()}
    size = sum(tensor.numel() * 2 for tensor in halves.values())
    if size > MOST_BYTES:
        raise ValueError(f"the adapter would take {size:,} bytes of at most {MOST_BYTES:,}: train a smaller rank")
    if unfit := [name for name, tensor in halves.items() if not bool(tensor.isfinite().all())]:
        raise ValueError(f"{unfit[0]} does not fit fp16: the run has diverged, go back to an earlier checkpoint")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    save_whole(partial, halves, metadata)
    digest = sha256_of_file(partial)
    os.replace(partial, out)  # noqa: PTH105
    # A reader between the two sees a digest that does not match, and says so.
    out.with_name(out.name + ".sha256").write_text(f"{digest}  {out.name}\n", encoding="utf-8")
    return digest
