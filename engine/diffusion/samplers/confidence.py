"""Confidence (Fast-dLLM, Wu et al. 2025, arXiv 2505.22618): accept predictions whose probability is high enough."""

from __future__ import annotations

import torch

from engine.diffusion.reading import Reading


class Confidence:
    """The first rule that is on decides.

    top_n: the n surest of each step. factor f: the n surest, for the largest n whose n-th probability is at least
    1 - f / (n + 1). Else all whose probability is above `threshold`; a threshold of 1 accepts none by itself.
    """

    def __init__(self, threshold: float, factor: float = 0.0, top_n: int = 0) -> None:
        self._threshold = threshold
        self._factor = factor
        self._top_n = top_n

    def certainty(self, reading: Reading) -> torch.Tensor:
        return reading.confidence

    def sure(self, reading: Reading, candidates: torch.Tensor) -> torch.Tensor:
        if not self._top_n and not self._factor:
            return candidates & (reading.confidence > self._threshold)
        usable = candidates & ~reading.confidence.isnan()
        ordered, order = torch.where(usable, reading.confidence, -1.0).sort(descending=True, stable=True)
        rank = torch.arange(1, ordered.shape[0] + 1, device=ordered.device)
        if self._top_n:
            within = rank <= self._top_n
        else:
            enough = ordered >= 1 - self._factor / (rank + 1)
            within = rank <= (rank * enough).max()
        return torch.zeros_like(candidates).scatter(0, order, within) & usable

    def trusts(self, reading: Reading) -> torch.Tensor:
        return reading.present > self._threshold
