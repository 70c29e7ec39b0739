"""How likely a draft is to be kept: learned numbers, and a request's own experience on top of them. Pure.

A draft token is offered when its chance is worth a row of the pass, so these numbers decide time and never text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_MOST = 0.995
_PRIOR_CHECKS = 4.0
"""How many of a request's own checks weigh as much as what was learned before."""
_FORGETTING = 0.9


@dataclass(frozen=True, slots=True)
class MaskConfidence:
    """Learned on held-out gaps, stored with the adapter.

    scale, shift: by depth (masks behind the anchor, the first being 0), the logistic fit that turns a mask's own
    probability into the chance that the causal mode chooses its token: sigmoid(scale * logit(p) + shift) (Platt 1999).
    gains: by depth, the chance that the causal mode keeps all masks up to it: what a mask there is expected to save.
    """

    scale: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    gains: tuple[float, ...] = (0.4, 0.15)

    def __post_init__(self) -> None:
        if not self.scale or len(self.scale) != len(self.shift) or not self.gains:
            raise ValueError("mask confidence needs as many scales as shifts, at least one, and at least one gain")
        if not all(math.isfinite(value) for value in (*self.scale, *self.shift, *self.gains)):
            raise ValueError("mask confidence holds a number that is not finite")

    def kept(self, depth: int, probability: float) -> float:
        """The chance that a mask's token is kept. A probability that is no number has none."""
        if not 0.0 < probability <= 1.0:
            return 0.0
        place = min(depth, len(self.scale) - 1)
        logit = math.log(probability) - math.log1p(-min(probability, 1 - 1e-6))
        return _sigmoid(self.scale[place] * logit + self.shift[place])


# How often the look-up names the true token, by how many tokens before the place agree: counted over the 9,231 places
# of 1,000 held-out gaps where it names one. The last entry stands for all longer agreements.
NGRAM_KEPT = (0.0, 0.26, 0.38, 0.47, 0.61, 0.67, 0.69, 0.69, 0.7, 0.75, 0.75, 0.8)
# Of the present text. Counted over the places of 160 edits of functions of 20 to 60 lines that change under 15 % of
# their tokens: see `tests.bench.warm_edits`. Behind a run of n tokens the next one departs about 0.4 times in n; a run
# this long is what the beginning of a text is worth.
WARM_CERTAIN_RUN = 12
_WARM_DEPARTS, _WARM_ALWAYS_DEPARTS = 0.4, 0.004
# Of the rest of an answer lately given, once more was typed along with it: that the model takes its first token again,
# and then each further one. It is nearly always all of it or nothing.
EXPECTED_KEPT, EXPECTED_GOES_ON = 0.89, 0.99
# The next token once a guess about where the text goes on came true.
WARM_BEHIND_GUESS = 0.87
# The token guessed behind a change's first, second, … token that stands nowhere near in the present text.
_WARM_LOST = (0.37, 0.05, 0.05, 0.01)
# The next token when the last one was found in the present text: where the change began, just before it, up to four
# tokens behind, anywhere else.
_WARM_FOUND_THERE, _WARM_FOUND_BEFORE, _WARM_FOUND_NEAR, _WARM_FOUND_ELSEWHERE = 0.93, 0.55, 0.62, 0.2
_NEAR = 4
# An edit of this text, at the next place where it could be made; and its further tokens once the first came.
_EDIT_KEPT = 0.6
WITHIN_EDIT_KEPT = 0.97


def warm_running_chance(run: int) -> float:
    """Of the present text's next token behind `run` that were kept in a row."""
    if run <= 1:
        return WARM_BEHIND_GUESS
    return 1 - max(_WARM_ALWAYS_DEPARTS, _WARM_DEPARTS / run)


def warm_lost_chance(missed: int) -> float:
    """Of the token guessed when the last `missed`, at least one, are nowhere near in the present text."""
    return _WARM_LOST[min(missed, len(_WARM_LOST)) - 1]


def warm_found_chance(moved: int) -> float:
    """Of the token behind the place where the last one was found, `moved` places behind where the change began."""
    if moved == 0:
        return _WARM_FOUND_THERE
    if moved == -1:
        return _WARM_FOUND_BEFORE
    return _WARM_FOUND_NEAR if 0 < moved <= _NEAR else _WARM_FOUND_ELSEWHERE


def edit_chance(held: int, failed: int) -> float:
    """Of an edit that was made once, and of whose next places it was made at `held` and not made at `failed`."""
    return (_EDIT_KEPT + held) / (1 + held + failed)


@dataclass(slots=True)
class Experience:
    """What one source's drafts were worth in this request: recent tokens kept and tokens refused."""

    kept: float = 0.0
    refused: float = 0.0

    def record(self, kept: int, refused: bool) -> None:
        """Count a checked draft: its leading `kept` tokens, and whether the one behind them was wrong."""
        self.kept = self.kept * _FORGETTING + kept
        self.refused = self.refused * _FORGETTING + refused

    def chance(self, learned: float) -> float:
        """The learned chance, moved by the experience."""
        checks = self.kept + self.refused
        return min(_MOST, (_PRIOR_CHECKS * learned + self.kept) / (_PRIOR_CHECKS + checks))


def ngram_chance(agreement: int, kept: Sequence[float] = NGRAM_KEPT) -> float:
    """The learned chance of a token that followed `agreement` equal tokens elsewhere in the text."""
    return kept[min(agreement, len(kept) - 1)]


def both(first: float, second: float) -> float:
    """The chance of a token that two sources name, taken as independent witnesses."""
    return min(_MOST, 1 - (1 - first) * (1 - second))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))
