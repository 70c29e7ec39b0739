"""Self-correction: which settled places are re-opened or edited after a step.

The probability of the *present* token, given all the rest, decides; that of a freshly sampled one says nothing about
what stands there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.diffusion.reading import Reading
from engine.diffusion.sampling import RemaskStrategy


@dataclass(frozen=True, slots=True)
class Progress:
    """Shares of the places that are settled before and after a step, by the schedule."""

    before: float
    after: float

    @property
    def most(self) -> float:
        """ReMDM's largest share that may be re-opened without falling behind: min(1, (1 - after) / before).

        Nothing before the first step: what is settled then was given, not guessed.
        """
        return min(1.0, (1 - self.after) / self.before) if self.before > 0 else 0.0


def reopened(
    strategy: RemaskStrategy,
    strength: float,
    reading: Reading,
    settled: torch.Tensor,
    progress: Progress,
    generator: torch.Generator,
) -> torch.Tensor:
    """[n] bool: the settled places ([n] bool) to be denoised anew, after ReMDM (Wang et al. 2025, arXiv 2503.00307).

    cap: a share of min(strength, `Progress.most`). rescale: of strength * `Progress.most`. confidence: as rescale, the
    draw of each place weighted by softmax(-probability of its present token). The paper re-opens evenly in cap and
    rescale; here the draws say how many, and the least probable present tokens go. A place that reads as NaN says
    nothing against its token and stays.
    """
    none = torch.zeros_like(settled)
    usable = settled & ~reading.present.isnan()
    if strategy in {"none", "edit"} or progress.after >= 1:
        return none
    share = min(strength, progress.most) if strategy == "cap" else strength * progress.most
    drawn = torch.rand(settled.shape[0], generator=generator)
    if strategy == "confidence":
        weight = torch.where(usable, -reading.present, -torch.inf).softmax(dim=-1)
        return usable & (drawn < share * weight * usable.sum())
    count = int((usable & (drawn < share)).sum())
    order = torch.where(usable, reading.present, torch.inf).argsort(stable=True)
    none[order[:count]] = True
    return none & usable


def edited(strength: float, reading: Reading, settled: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[n] bool: settled places whose token is replaced by a likelier one (token-to-token edit, LLaDA 2.1).

    Another token must be the likeliest, and its probability above `strength`.
    """
    return settled & (reading.likeliest != ids) & (reading.best > strength)
