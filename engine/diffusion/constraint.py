"""The seam of constraints: what the text of a canvas must be, beyond what the model finds likely."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.canvas import Canvas


class Constraint(Protocol):
    """Called by the loop of parallel denoising."""

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """[n, vocab] float32 logits with -inf where an id may not stand. The given ones may be overwritten."""
        ...

    def review(self, canvas: Canvas) -> torch.Tensor | None:
        """Of a full canvas: the places ([n] bool) to be denoised anew, or None when it is satisfied or gives up."""
        ...
