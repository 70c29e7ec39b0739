"""The entropy bound (Ben-Hamu et al. 2025, arXiv 2505.24857): accept places that hardly depend on each other."""

from __future__ import annotations

import torch

from engine.diffusion.reading import Reading


class EntropyBound:
    """Accepts the places of lowest entropy while their joint mutual information is bounded.

    The sum of the accepted entropies less the largest of them bounds it from above: sum - max <= bound (nats), so at
    least one place is accepted.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound

    def certainty(self, reading: Reading) -> torch.Tensor:
        """Negative entropy: a sign slip here would accept what is least certain first."""
        return -reading.entropy

    def sure(self, reading: Reading, candidates: torch.Tensor) -> torch.Tensor:
        entropy = torch.where(candidates & ~reading.entropy.isnan(), reading.entropy, torch.inf)
        ordered, order = entropy.sort(stable=True)
        # Ascending, so each is the largest so far. Behind the candidates it is inf - inf: no number, not accepted.
        within = ordered.cumsum(dim=-1) - ordered <= self._bound
        return torch.zeros_like(candidates).scatter(0, order, within) & candidates

    def trusts(self, reading: Reading) -> torch.Tensor:
        present = reading.present >= reading.best
        return self.sure(reading, present)
