"""A text that differs from the likeliest one, the same for the same seed: sampled where the model is in doubt.

Sampling with the Gumbel-max trick (Maddison et al., arXiv 1411.0030): to the logits of each verified row, tempered,
comes noise that depends on the seed and the row's place only, and the largest sum is taken. So a row's choice is a
function of the ids in front of it, drafts are verified as they are for the likeliest text, and whatever was drafted the
text is the same. Only ids that are not much less likely than the likeliest are in the running (min-p, Nguyen et al.,
arXiv 2407.01082). Where that took the likeliest id everywhere, the text takes the second choice at one of the places
of most doubt, and the likeliest ids from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import log

import torch

from engine.canvas import Canvas
from engine.diffusion.denoise import Denoised, Gap, Watch, denoise, draft_counts
from engine.diffusion.stopping import Limits
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import Context, Denoiser

TEMPERATURE = 0.8
LEAST_SHARE = 0.08
"""Of the likeliest id's probability: what is less likely is not drawn."""
DRAWN_FROM = 16
"""How many of the likeliest ids of a row are looked at."""
TURNS = 4
"""Among so many places of most doubt the seed chooses, where nothing else made a difference."""
_STRIDE = 1_000_003
"""Between the noise of two seeds; no text has so many places."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What was chosen: `is_turn` when not the likeliest. `second` is the next likeliest id that ends no text, -1 for
    none, and `doubt` the logarithm of its share of the likeliest id's probability."""

    is_turn: bool
    second: int
    doubt: float


class SeededChoice:
    """Implements `denoise.RowRules`; remembers what it chose at each place. `ends`: the ids that end a text."""

    def __init__(self, seed: int, ends: frozenset[int]) -> None:
        self._seed = seed
        self._ends = ends
        self._places: dict[int, _Place] = {}

    def constrain(self, settled: Sequence[int], draft: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """See `RowRules.constrain`: verified rows hold the sums of the ids in the running, and -inf."""
        judged = 1 + len(draft)
        rows = logits[:judged]
        values, ids = rows.topk(min(DRAWN_FROM, rows.shape[1]))
        noise = torch.stack([self._noise(len(settled) + row, values.shape[1]) for row in range(judged)])
        sums = values / TEMPERATURE + noise.to(values)
        sums = sums.masked_fill(values < values[:, :1] + log(LEAST_SHARE), -torch.inf)
        self._note(len(settled), values - values[:, :1], ids, sums.argmax(-1).tolist())
        drawn = torch.full_like(rows, -torch.inf).scatter(1, ids, sums)
        return torch.cat([drawn, logits[judged:]])

    def has_turned(self, count: int) -> bool:
        """Whether one of the first `count` places does not hold the likeliest id."""
        return any(self._places[place].is_turn for place in range(count))

    def turn(self, count: int) -> tuple[int, int] | None:
        """One of the first `count` places, and the id that is to stand there instead; None where there is none."""
        open_ = [place for place in range(count) if self._places[place].second >= 0]
        ranked = sorted(open_, key=lambda place: (-self._places[place].doubt, place))[:TURNS]
        if not ranked:
            return None
        place = ranked[(self._seed - 1) % len(ranked)]
        return place, self._places[place].second

    def _noise(self, place: int, count: int) -> torch.Tensor:
        """[count] float64 of the standard Gumbel distribution."""
        generator = torch.Generator().manual_seed(self._seed * _STRIDE + place)
        uniform = torch.rand(count, generator=generator, dtype=torch.float64).clamp_min(1e-12)
        return -torch.log(-torch.log(uniform))

    def _note(self, first: int, shares: torch.Tensor, ids: torch.Tensor, chosen: Sequence[int]) -> None:
        rows = zip(shares.tolist(), ids.tolist(), chosen, strict=True)
        for place, (doubts, tokens, choice) in enumerate(rows, start=first):
            others = zip(tokens[1:], doubts[1:], strict=True)
            second, doubt = next(((token, doubt) for token, doubt in others if token not in self._ends), (-1, 0.0))
            self._places[place] = _Place(choice != 0, second, doubt)


def denoise_seeded(
    model: Denoiser,
    context: Context,
    gap: Gap,
    limits: Limits,
    config: VerifyConfig,
    expired: Callable[[], bool],
    seed: int,
    watch: Watch | None = None,
) -> Generator[Canvas, None, Denoised]:
    """As `denoise`, with the text of a seed from 1 on. Counts are of all that was computed."""
    base = context.length
    choice = SeededChoice(seed, model.facts.special.special)
    first: Denoised = yield from denoise(model, context, gap, limits, config, expired, watch, rules=choice)
    shown = _shown(model, first)
    turn = None if first.stop == "deadline" or choice.has_turned(shown) else choice.turn(shown)
    if turn is None:
        return first
    place, token = turn
    begun = (*first.settled[:place], token)
    context.truncate(base + 1 + place)
    second: Denoised = yield from denoise(model, context, gap, limits, config, expired, watch, begun)
    return replace(
        second,
        passes=first.passes + second.passes,
        tokens=first.tokens + second.tokens - len(begun),
        drafts=draft_counts([first.drafts, second.drafts]),
    )


def _shown(model: Denoiser, result: Denoised) -> int:
    """How many of the settled ids write what is in the text: they may reach beyond where it was cut."""
    size = len(result.text.encode())
    ends = accumulate(len(model.tokenizer.decode_bytes([token])) for token in result.settled)
    return sum(end <= size for end in ends)
