"""Several constraints as one, and the check that they leave something: `Combined`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from engine.canvas import Canvas
from engine.diffusion.constraint import Constraint
from engine.diffusion.constraints.failure import unsatisfied


@dataclass(slots=True)
class Combined:
    """All of `constraints`, in order.

    reviews: how often full canvases may be sent back in all; below what the loop has patience for, so that a text is
    never let through because the loop asks no more.
    """

    constraints: Sequence[Constraint]
    reviews: int = 7
    _sent_back: int = field(default=0, init=False)

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """See `Constraint`."""
        for constraint in self.constraints:
            logits = constraint.constrain(canvas, logits)
        dead = torch.isneginf(logits).all(-1) & ~canvas.locked
        if bool(dead.any()):
            place = int(dead.nonzero()[0])
            raise unsatisfied(
                f"no token obeys every constraint at place {place} of the gap",
                "loosen a limit, allow more characters, or leave a longer gap",
            )
        return logits

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:
        """See `Constraint`. Every constraint is asked, so that all faults are mended in one go."""
        named = [
            places
            for constraint in self.constraints
            if (places := constraint.review(canvas, is_last=is_last)) is not None
        ]
        if not named:
            return None
        if self._sent_back >= self.reviews:
            raise unsatisfied(
                f"the text broke its constraints again after {self.reviews} corrections", "loosen a constraint"
            )
        self._sent_back += 1
        return torch.stack(named).any(0) & ~canvas.locked

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:
        """See `Constraint`."""
        self._sent_back = 0
        for constraint in self.constraints:
            constraint.follow(committed, begun)
