"""How a token is chosen from the probabilities of a place: `Choice`, and the draws it asks for."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.diffusion.sampling import Draws
from engine.runtime.packed import Kernel
from engine.runtime.softmax import drawn as drawn_by_kernel

_GROUP = 64
_TRIES = 8
"""Dice for a place that is drawn from a nucleus: one of a usual size refuses hardly a row so often. The last is for a
nucleus that is sorted out after all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How tokens are chosen in a step. temperature 0, or deterministic: the likeliest one. draws: see `Draws`.

    others: how many of the likeliest ids are told of each place, for who looks on.
    """

    temperature: float
    deterministic: bool
    top_p: float
    draws: Draws = "inverse"
    others: int = 0

    @property
    def divisor(self) -> float:
        """What the logits are divided by; 1 where the temperature is 0."""
        return self.temperature if self.temperature > 0 else 1.0

    @property
    def draws_chance(self) -> bool:
        """Whether chance has a say."""
        return not self.deterministic and self.temperature > 0

    @property
    def as_multinomial(self) -> bool:
        """Whether the draws are to be those of torch.multinomial."""
        return self.draws_chance and self.draws == "multinomial"


def dice_for(choice: Choice, count: int, generator: torch.Generator) -> torch.Tensor | None:
    """[count, tries] float32 in [0, 1) for each place that is drawn by the inverse; None where none is needed."""
    if not choice.draws_chance or choice.as_multinomial:
        return None
    return torch.rand(count, _TRIES if choice.top_p < 1 else 1, generator=generator)


def draw(
    probs: torch.Tensor,
    spare: torch.Tensor,
    choice: Choice,
    dice: torch.Tensor | None,
    generator: torch.Generator,
    kernel: Kernel | None = None,
) -> torch.Tensor:
    """[m] int64 drawn from [m, vocab] float32 probabilities; some id in range for a row of no usable numbers.

    spare, of the same shape, is overwritten. dice: [m, tries] float32, see `dice_for`; None for torch.multinomial's.
    kernel: what draws on a CPU instead of torch.
    """
    if dice is None:
        kept = nucleus(probs, choice.top_p) if choice.top_p < 1 else probs
        return _race(kept, spare, generator)
    if kernel is not None:
        return _by_kernel(probs, choice.top_p, dice, kernel)
    if choice.top_p >= 1:
        return inverted(probs, dice[:, 0])
    if probs.device.type != "cpu":
        # A retry would have to ask the device how the first try went.
        return inverted(nucleus(probs, choice.top_p), dice[:, 0])
    return _from_nucleus(probs, spare, choice.top_p, dice)


def highest_of(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest of each row of [m, vocab] and its first place; NaN is larger than anything.

    By groups: a maximum without its place is several times as fast, and then only one group must be searched.
    """
    rows, vocab = values.shape
    if vocab % _GROUP:
        found = values.max(dim=-1)
        return found.values, found.indices
    grouped = values.view(rows, vocab // _GROUP, _GROUP)
    group = grouped.amax(dim=-1).argmax(dim=-1)
    inside = grouped[torch.arange(rows, device=values.device), group]
    highest, place = inside.max(dim=-1)
    return highest, group * _GROUP + place


def inverted(probs: torch.Tensor, dice: torch.Tensor) -> torch.Tensor:
    """[m] int64: where `dice` ([m] float32 in [0, 1)) falls in the running sum of each row of [m, vocab].

    The sums of groups first, then those in one group: as exact as a running sum over all ids, and several times faster.
    """
    rows, vocab = probs.shape
    if vocab % _GROUP:
        sums = probs.cumsum(dim=-1)
        return _falls(sums, dice * sums[:, -1])
    grouped = probs.view(rows, vocab // _GROUP, _GROUP)
    sums = grouped.sum(dim=-1).cumsum(dim=-1)
    wanted = dice * sums[:, -1]
    group = _falls(sums, wanted)
    before = torch.where(group > 0, sums.gather(-1, (group - 1).clamp_(min=0)[:, None]).squeeze(-1), 0.0)
    inside = grouped[torch.arange(rows, device=probs.device), group].cumsum(dim=-1)
    return group * _GROUP + _falls(inside, wanted - before)


def _falls(sums: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    found = torch.searchsorted(sums, wanted[:, None], right=True).squeeze(-1)
    return found.clamp_(max=sums.shape[-1] - 1)


def nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of likeliest ids that holds `top_p` of the mass (Holtzman et al. 2020), and all ids as likely as
    the last of them; 0 for every other. Never empty."""
    ordered = probs.sort(dim=-1, descending=True).values
    before = ordered.cumsum(dim=-1) - ordered
    last = ordered.masked_fill(before >= top_p, torch.inf).amin(dim=-1, keepdim=True)
    return torch.where(probs >= last, probs, 0.0)


def _by_kernel(probs: torch.Tensor, top_p: float, dice: torch.Tensor, kernel: Kernel) -> torch.Tensor:
    drawn = drawn_by_kernel(probs, dice if top_p >= 1 else dice[:, :-1].contiguous(), top_p, kernel)
    left = (drawn < 0).nonzero().squeeze(-1)
    if left.shape[0]:
        drawn[left] = inverted(nucleus(probs[left], top_p), dice[left, -1])
    return drawn


def _from_nucleus(probs: torch.Tensor, spare: torch.Tensor, top_p: float, dice: torch.Tensor) -> torch.Tensor:
    """As `inverted` of the nucleus, without sorting the ids: drawn from all of them, again where another was hit.

    An id is of the nucleus if those likelier than it hold less than `top_p`. Rows that are refused every time are
    sorted after all, so that each draw is of the nucleus exactly.
    """
    drawn = inverted(probs, dice[:, 0])
    left = torch.arange(probs.shape[0])
    for attempt in range(1, dice.shape[1]):
        chance = probs[left, drawn[left]]
        # Whatever is likelier has no more than the rest of the mass: a likely id needs no looking at the others.
        unsure = chance <= 1 - top_p
        left, chance = left[unsure], chance[unsure]
        if not left.shape[0]:
            break
        mine = probs if left.shape[0] == probs.shape[0] else probs[left]
        likelier = spare[: mine.shape[0]].copy_(mine).gt_(chance[:, None])
        left = left[likelier.mul_(mine).sum(dim=-1) >= top_p]
        if not left.shape[0]:
            break
        kept = probs[left] if attempt < dice.shape[1] - 1 else nucleus(probs[left], top_p)
        drawn[left] = inverted(kept, dice[left, attempt])
    return drawn


def _race(probs: torch.Tensor, spare: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each id's probability over an exponential draw; the largest wins. What torch.multinomial draws, bit for bit.

    A random number for every id, which on a CPU costs more than all the rest.
    """
    draws = spare.exponential_(1, generator=generator)
    return highest_of(torch.div(probs, draws, out=spare))[1].clamp_(max=probs.shape[-1] - 1)
