"""How large a batch may become and how long it is waited for: `BatchLimits`. Loads no torch, unlike `batching`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """canvases: most of them in one pass. window_s: seconds a step may wait for those of jobs under way."""

    canvases: int = 32
    window_s: float = 0.05
