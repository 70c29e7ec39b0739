"""The seam between the denoising loop and a constraint: `Constraint`, and how it fails."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.canvas import Canvas
from engine.protocol.errors import EngineError


class Constraint(Protocol):
    """One rule for one job. May remember what failed, so an object serves a single canvas from start to end."""

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """The logits with what may not come out at minus infinity; the given tensor is not written to.

        logits: [places, vocab] float32. Rows of locked places mean nothing and stay as they are. Called in every step,
        after the family's own forbidden ids were taken away. Raises EngineError(unsatisfied) when nothing is left.
        """
        ...

    def review(self, canvas: Canvas) -> torch.Tensor | None:
        """Places [n] bool of a full canvas that must be denoised anew, None when it obeys.

        Never names a locked place. Raises EngineError(unsatisfied) when trying again has no prospect.
        """
        ...


def unsatisfied(message: str, remedy: str) -> EngineError:
    """The failure of a text that could not be made to obey."""
    return EngineError("unsatisfied", message, remedy)
