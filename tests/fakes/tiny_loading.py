"""Loading the tiny model as the engine loads a real one, and asking it for logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from engine.models.base import CanvasRows
from engine.models.hybrid import HybridDenoiser
from engine.models.loading import load_denoiser

IDS = list(range(40, 80))


def load(model: Path, **options: Any) -> HybridDenoiser:
    chosen: dict[str, Any] = {"name": "tiny", "adapter": None, "threads": None, "window_tokens": 256} | options
    return load_denoiser(model, model.parent / "cache", **chosen)


def logits(model: HybridDenoiser, *, adapted: bool = False, ids: list[int] = IDS) -> torch.Tensor:
    context = model.context_for([])
    try:
        return model.step(context, CanvasRows(torch.tensor(ids), torch.arange(len(ids)), None, adapted))
    finally:
        model.release(context)


def difference(left: torch.Tensor, right: torch.Tensor) -> float:
    return float((left - right).norm() / right.norm())
