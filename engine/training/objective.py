"""What a gap's rows are trained to predict: the true text, and the causal rows' own view of it.

Two terms. Causal rows: cross entropy with the true token, the end token's weighed more, as a gap that does not end
is lost. Mask rows: cross entropy with the true token mixed with that to the prediction of the causal row of the same
place (distillation; TiDAR, Liu et al. 2025, trains both modes in one pass likewise), because a draft is kept when it
equals the causal mode's choice. Places near the anchor weigh more (DFlash's exponential weights).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from engine.training.canvas_rows import NO_LABEL, CanvasRows
from engine.training.differentiable import FrozenModel
from engine.training.frozen_linear import FrozenLinear, frozen_linear
from engine.training.settings_text import require


@dataclass(frozen=True, slots=True)
class LossWeights:
    """masks: weight of the mask term beside the causal one. distilled: share of the mask term that follows the causal
    rows. end: weight of the end token. decay: places over which a mask's weight falls by e. revealed: weight of masks
    in blocks that reveal text. per_tokens: tokens a gap's sums are divided by, so that every token weighs the same.

    Raises ValueError for a weight that is negative or a divisor that is not positive.
    """

    masks: float = 0.4
    distilled: float = 0.5
    end: float = 2.0
    decay: float = 3.0
    revealed: float = 0.3
    per_tokens: float = 24.0

    def __post_init__(self) -> None:
        for name in ("masks", "end", "revealed"):
            require(0 <= getattr(self, name) < math.inf, f"{name} is a weight: a finite number, not negative")
        require(0 <= self.distilled <= 1, "distilled is a share: from 0 to 1")
        require(0 < self.decay < math.inf, "decay must be a positive number of places")
        require(0 < self.per_tokens < math.inf, "per_tokens must be a positive number of tokens")


@dataclass(frozen=True, slots=True)
class GapLoss:
    """One gap's losses: `total`, a graph scalar to be differentiated, and sums in nats with their counts.

    causal_sum: over the gap's tokens and its end, unweighted. mask_sum: against the true text, weighted by place.
    """

    total: torch.Tensor
    causal_sum: float
    causal_count: int
    mask_sum: float
    mask_weight: float

    def detached(self) -> GapLoss:
        """The same numbers without the graph."""
        return replace(self, total=self.total.detach())


class ReducedHead:
    """The output matrix over the frequent part of the vocabulary and whatever else a gap needs.

    The rest of the vocabulary is taken to have no probability: its share is small and costs most of the work.
    """

    def __init__(self, model: FrozenModel, frequent: torch.Tensor, precision: str) -> None:
        """frequent: [m] int64, distinct ids, on the model's device. Raises ValueError for an id that comes twice."""
        if torch.unique(frequent).numel() != frequent.numel():
            raise ValueError("the frequent ids hold one twice, which would halve its probability")
        self._head = model.head
        self._place = torch.full((model.head.shape[0],), -1, device=frequent.device)
        self._place[frequent] = torch.arange(frequent.numel(), device=frequent.device)
        self._frequent: FrozenLinear = frozen_linear(model.head[frequent], precision)
        self._count = frequent.numel()

    def __call__(self, hidden: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [n, m + extra] float32 and the labels' columns [n] (NO_LABEL stays).

        hidden: [n, hidden] float32; labels: [n] int64, both on the model's device.
        """
        wanted = torch.unique(labels[labels >= 0])
        extra = wanted[self._place[wanted] < 0]
        logits = self._frequent(hidden)
        if extra.numel():
            logits = torch.cat([logits, hidden @ self._head[extra].t()], dim=1)
        place = self._place.clone() if extra.numel() else self._place
        place[extra] = self._count + torch.arange(extra.numel(), device=extra.device)
        columns = torch.where(labels >= 0, place[labels.clamp_min(0)], NO_LABEL)
        return logits, columns


def gap_loss(logits: torch.Tensor, columns: torch.Tensor, rows: CanvasRows, weights: LossWeights) -> GapLoss:
    """The loss of one gap. logits: [n, m]; columns: [n] the labels' columns of the logits; rows: on any device."""
    log_p = logits.log_softmax(-1)
    picked = -log_p.gather(1, columns.clamp_min(0)[:, None])[:, 0]
    causal = picked[: rows.causal]
    weighed = causal.sum() + (weights.end - 1) * causal[-1]
    mask_rows = (columns[rows.causal :] >= 0).nonzero()[:, 0] + rows.causal
    depths = rows.depths.to(logits.device)[mask_rows]
    share = _mask_weights(depths, weights)
    if not bool((share > 0).any()):
        total = weighed / weights.per_tokens
        return GapLoss(total, float(causal.detach().sum()), rows.causal, 0.0, 0.0)
    teacher = log_p[rows.teachers.to(logits.device)[mask_rows]].detach().exp()
    soft = -(teacher * log_p[mask_rows]).sum(-1)
    # The causal rows have not seen what a block reveals and are no teachers of it.
    follows = torch.where(depths > 0, weights.distilled, 0.0)
    mixed = (1 - follows) * picked[mask_rows] + follows * soft
    # Masks are more numerous than the gap's tokens; their weights are brought to the causal rows' number.
    masks = (mixed * share).sum() / share.sum() * rows.causal
    total = (weighed + weights.masks * masks) / weights.per_tokens
    hard = float((picked[mask_rows].detach() * share).sum())
    return GapLoss(total, float(causal.detach().sum()), rows.causal, hard, float(share.sum()))


def _mask_weights(depths: torch.Tensor, weights: LossWeights) -> torch.Tensor:
    near = torch.exp(-(depths.float() - 1) / weights.decay)
    return torch.where(depths > 0, near, torch.full_like(near, weights.revealed))
