"""All numbers of parallel denoising, in one frozen record: `SamplingConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from engine.diffusion.settings_mapping import FromMapping

Schedule = Literal["linear", "cosine", "adaptive"]
SamplerName = Literal["entropy_bound", "confidence", "remask"]
RemaskStrategy = Literal["none", "cap", "rescale", "confidence", "edit"]
Draws = Literal["inverse", "multinomial"]
"""How chance picks an id: where one random number falls in the running sum of the probabilities, or as
torch.multinomial does of the same generator, with a random number for every id."""


@dataclass(frozen=True, slots=True)
class SamplingConfig(FromMapping):
    """How a canvas is denoised.

    steps: most denoising steps of a canvas, or of a block of it; 0 means the family's own number where the noise is
        uniform, else as many as the largest hole has places.
    sampler: the rule that says which predictions are accepted in a step (see `samplers`).
    schedule: how many places are due after a share of the steps: linearly, along a cosine, or as many as are sure.
    temperature_start, temperature_end: of the first and the last step, in between linearly; 0 chooses the likeliest.
    deterministic: the likeliest token instead of a sampled one.
    draws: `multinomial` makes DiffusionGemma's text that of its own `generate`, draw for draw, at several times the
        price of a step outside the forward pass; the chances are the same.
    top_p: nucleus sampling (Holtzman et al. 2020, arXiv 1904.09751); 1 is off.
    guidance_scale: classifier-free guidance (Ho and Salimans 2022, arXiv 2207.12598); 0 is off.
    entropy_bound: nats, of `entropy_bound` (Ben-Hamu et al. 2025, arXiv 2505.24857).
    confidence_threshold, confidence_factor, top_n: of `confidence` (Fast-dLLM, Wu et al. 2025, arXiv 2505.22618);
        factor 0 and top_n 0 are off; of top_n, factor and threshold the first that is on decides.
    remask, remask_strength: of `remask`: ReMDM's sigma (Wang et al. 2025, arXiv 2503.00307) or, for `edit`, the
        probability another token must have to replace a settled one (LLaDA 2.1).
    stable_steps, stop_entropy: the canvas is finished when the likeliest tokens equal those of so many steps before and
        the mean entropy of the free places (nats) is below; stable_steps 0 asks for low entropy alone, stop_entropy 0
        turns the rule off.
    self_conditioning: feed the last prediction back where the family was trained for it.
    refresh_every: steps between exact recomputations of approximate caches; 1 is always exact.
    """

    steps: int = 0
    sampler: SamplerName = "confidence"
    schedule: Schedule = "adaptive"
    temperature_start: float = 0.0
    temperature_end: float = 0.0
    deterministic: bool = True
    draws: Draws = "inverse"
    top_p: float = 1.0
    guidance_scale: float = 0.0
    entropy_bound: float = 0.1
    confidence_threshold: float = 0.9
    confidence_factor: float = 0.0
    top_n: int = 0
    remask: RemaskStrategy = "none"
    remask_strength: float = 0.0
    stable_steps: int = 0
    stop_entropy: float = 0.0
    self_conditioning: bool = True
    refresh_every: int = 1

    def __post_init__(self) -> None:
        named = {"sampler": SamplerName, "schedule": Schedule, "remask": RemaskStrategy, "draws": Draws}
        for name, kinds in named.items():
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(f"{name} must be one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}")
        for name in ("steps", "top_n", "stable_steps"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.refresh_every < 1:
            raise ValueError(f"refresh_every must be positive, got {self.refresh_every}")
        for name in ("temperature_start", "temperature_end", "guidance_scale", "entropy_bound", "stop_entropy"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        for name in ("confidence_threshold", "remask_strength"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if not self.confidence_factor >= 0:
            raise ValueError(f"confidence_factor must not be negative, got {self.confidence_factor}")
