"""The seam of constraints: what the text of a canvas must be, beyond what the model finds likely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from engine.canvas import Canvas


class Constraint(Protocol):
    """One rule for one job, called by the loop of parallel denoising. May remember what failed.

    Never touches a locked place. Raises EngineError(unsatisfied) where trying on has no prospect.
    """

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """[n, vocab] float32 logits with -inf where an id may not stand. The given ones may be overwritten.

        Called in every step, after the ids that can never come out were taken away.
        """
        ...

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:
        """Of a full canvas: the places ([n] bool) to be denoised anew, or None when it is satisfied.

        is_last: whether the text ends on it. What can only be said of a whole text is not asked before.
        """
        ...

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:
        """The text goes on in a next canvas, which from now on is the one that is meant.

        committed: the ids that stand between the beginning of the canvas so far and that of the next one. begun: those
        of the hole that goes on in it, from all canvases so far; empty when none does.
        """
        ...
