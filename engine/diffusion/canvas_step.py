"""What the loop of parallel denoising tells after each step: `CanvasStep`."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.canvas import Canvas
from engine.diffusion.halting import up_to_end
from engine.diffusion.reading import Others


@dataclass(frozen=True, slots=True)
class CanvasStep:
    """After one denoising step.

    canvas: the draft: what is settled, and the likeliest token at each free place (never noise once it was predicted).
    step: steps done, from 1; steps: how many it takes at most, as far as is known. entropy: [n] float32, nats, 0 where
    the step did not look; None where the sampler has none. accepted, changed: [n] bool, settled by this step, and whose
    draft token is another than a step ago. hole: [n] int64, the hole a place belongs to, -1 for none.
    before: ids of each hole from earlier canvases. silent: ids that are no text: noise, and what changes a length.
    others: the likeliest ids of each place, where they were asked for.
    """

    canvas: Canvas
    step: int
    steps: int
    entropy: torch.Tensor | None
    accepted: torch.Tensor
    changed: torch.Tensor
    hole: torch.Tensor
    before: tuple[tuple[int, ...], ...]
    silent: frozenset[int]
    end_ids: frozenset[int]
    others: Others | None = None

    def drafts(self) -> tuple[tuple[int, ...], ...]:
        """The ids of every hole as they are now. Waits for the device."""
        ids = [list(past) for past in self.before]
        for hole, token in zip(self.hole.tolist(), self.canvas.ids.tolist(), strict=True):
            if hole >= 0 and token not in self.silent:
                ids[hole].append(token)
        return tuple(up_to_end(hole, self.end_ids)[0] for hole in ids)
