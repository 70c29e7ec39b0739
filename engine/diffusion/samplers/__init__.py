"""Rules that say which predictions of a step are accepted (`Sampler`), and which accepted ones are re-opened."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.diffusion.reading import Reading
from engine.diffusion.samplers.confidence import Confidence
from engine.diffusion.samplers.entropy_bound import EntropyBound
from engine.diffusion.sampling import SamplingConfig


class Sampler(Protocol):
    """An acceptance rule."""

    def certainty(self, reading: Reading) -> torch.Tensor:
        """[n] float32 that orders the places: the higher, the surer. NaN where nothing usable was predicted."""
        ...

    def sure(self, reading: Reading, candidates: torch.Tensor) -> torch.Tensor:
        """[n] bool: those of the candidate places ([n] bool) that the rule accepts by itself; never one that is NaN."""
        ...

    def trusts(self, reading: Reading) -> torch.Tensor:
        """[n] bool: places where the present token may stay, by its own probability (warm start, re-checks)."""
        ...


def sampler_of(config: SamplingConfig) -> Sampler:
    """The acceptance rule of a configuration; `remask` accepts by confidence and re-opens besides."""
    if config.sampler == "entropy_bound":
        return EntropyBound(config.entropy_bound)
    return Confidence(config.confidence_threshold, config.confidence_factor, config.top_n)


def accept(sampler: Sampler, reading: Reading, candidates: torch.Tensor, due: int, *, exactly: bool) -> torch.Tensor:
    """[n] bool: the `due` surest candidates, and unless `exactly` so many are wanted whatever the rule is sure of.

    candidates: [n] bool. Places that read as NaN sort last and are never accepted.
    """
    certainty = sampler.certainty(reading)
    usable = candidates & ~certainty.isnan()
    ranked = torch.where(usable, certainty, -torch.inf)
    order = ranked.argsort(descending=True, stable=True)
    surest = torch.zeros_like(candidates)
    surest[order[:due]] = True
    surest &= usable
    return surest if exactly else surest | (sampler.sure(reading, usable) & usable)
