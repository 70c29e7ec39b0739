"""Which characters may be written: `AllowedCharacters`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.canvas import Canvas
from engine.diffusion.constraints.canvas_text import written_end
from engine.diffusion.constraints.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class AllowedCharacters:
    """allowed: [vocab] bool, from `Vocabulary.writing_only`: made once for a set of characters, and kept."""

    vocabulary: Vocabulary
    allowed: torch.Tensor

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """See `Constraint`."""
        banned = ~self.allowed.to(logits.device)
        return logits.masked_fill(~canvas.locked[:, None] & banned, -torch.inf)

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:  # noqa: ARG002  # the seam's
        """See `Constraint`: what a warm start brought along is denoised anew."""
        ids: list[int] = canvas.ids.tolist()
        wrong = torch.zeros_like(canvas.locked)
        for hole in canvas.holes():
            end = written_end(ids, hole, self.vocabulary.ends)
            wrong[hole.start : end] = ~self.allowed.to(canvas.ids.device)[canvas.ids[hole.start : end]]
        return wrong if bool(wrong.any()) else None

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:
        """See `Constraint`: every place is judged by itself."""
