"""Of several texts for a gap, the one that reads best with what stands behind it: `best_of`.

A gap's text is made by a prompt that shows both sides, and a small model is often sure of one that does not lead to
what follows. Read from left to right the same model is a good judge of that. As in InCoder's ranking of infills (Fried
et al., arXiv 2204.05999) the mean log probability of a text's tokens and those behind it decides. The texts are the
likeliest and its likely turns (`alternatives.likely_turns`). Owns no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch

from engine.alternatives import Turns, likely_turns
from engine.diffusion.denoise import Denoised, allowed_ids, draft_counts
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import CanvasRows, Context, Denoiser
from engine.prompts import Prompt
from engine.runtime.cache import common_prefix

BEHIND_CHARS = 32
"""So much of what follows is read with the text: a line, mostly. From 24 to 64 characters as many rows passed."""
_BORDER_CHARS = 16
"""So many more are tokenised, so that the last of them are not tokens of a word that was cut."""
DEPTH = 24
LEAST_CHANCE = 0.05
"""Of a turn, with all that stands before it. Where the first text is sure there is none, and nothing is weighed."""
MARGIN = 0.05
"""A turn must read so much better than the likeliest text, in nats per token: what is less is chance."""
_MOST_TOKENS = 256
"""Of a text that is judged; a longer one is left as it is."""
_ROWS = 32
"""In one pass: as many rows of logits as a pass of the denoiser has."""


@dataclass(frozen=True, slots=True)
class Around:
    """A gap's surroundings as they are read from left to right.

    known: the line's beginning up to the gap, which no row of the prompt's prefix holds. behind: the text after it.
    """

    known: str
    behind: str


def best_of(
    model: Denoiser,
    context: Context,
    prompt: Prompt,
    around: Around,
    first: Denoised,
    count: int,
    config: VerifyConfig,
    expired: Callable[[], bool],
) -> Generator[None, None, Denoised]:
    """The best of `first` and up to `count - 1` turns of it, with the passes of all; `first` where the time is up.

    `context` holds the prompt; afterwards only its prefix. A text that ran into its budget stands back behind any that
    ended. The likeliest is left only for one that reads clearly better.
    """
    is_blank = not around.behind[:BEHIND_CHARS].strip()
    if is_blank or first.stop == "deadline" or len(first.settled) > _MOST_TOKENS or expired():
        return first
    turns = Turns(count - 1, DEPTH, LEAST_CHANCE)
    found, passes = yield from _counted(likely_turns(model, context, prompt, first, turns, config, expired))
    texts = [text for text in (first, *found) if text.stop != "budget" and len(text.settled) <= _MOST_TOKENS]
    best = texts[0] if texts else first
    if len(texts) > 1:
        reader = _Reader(model, context, prompt, around)
        chances: list[float] = []
        for text in texts:
            if expired():
                break
            chances.append((yield from reader.chance(prompt.whole(text.text))))
        passes += reader.passes
        if len(chances) == len(texts):
            best = texts[_clearly_best(chances)]
    drafts = draft_counts([first.drafts, *(text.drafts for text in found)])
    return replace(best, passes=first.passes + passes, drafts=drafts)


def _clearly_best(chances: Sequence[float]) -> int:
    """Which reads best; the first, where that one is not better by more than `MARGIN`."""
    best = max(range(len(chances)), key=chances.__getitem__)
    return best if chances[best] > chances[0] + MARGIN else 0


def _counted(
    steps: Generator[tuple[str, ...], None, tuple[Denoised, ...]],
) -> Generator[None, None, tuple[tuple[Denoised, ...], int]]:
    """The steps without what they tell of themselves, and how many there were."""
    passes = 0
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            found: tuple[Denoised, ...] = finished.value
            return found, passes
        passes += 1
        yield None


class _Reader:
    """Reads texts from left to right behind the prompt's prefix, without the adapter.

    What a text shares with the one before is not read again. The context keeps the prefix and forgets what it held
    behind that.
    """

    def __init__(self, model: Denoiser, context: Context, prompt: Prompt, around: Around) -> None:
        self._model = model
        self._context = context
        self._around = around
        # The last token of the prefix is read again: what it says of the next one is wanted.
        self._base = prompt.ids.index(model.facts.special.fim_suffix) - 1
        self._last = prompt.ids[self._base]
        # What was read last, and the log probability of each of its ids but the first.
        self._ids: tuple[int, ...] = ()
        self._chances: list[float] = []
        self.passes = 0
        context.truncate(self._base)

    def chance(self, text: str) -> Generator[None, None, float]:
        """Mean log probability of the tokens of `text` and those behind it, in nats."""
        ids, first = self._read_with(text)
        same = common_prefix(self._ids, ids)
        self._ids, self._chances = ids, self._chances[: max(0, same - 1)]
        self._context.truncate(self._base + len(self._chances))
        while (done := len(self._chances)) < len(ids) - 1:
            logits = self._step(ids[done : min(done + _ROWS, len(ids) - 1)], done)
            chosen = torch.tensor(ids[done + 1 :][: logits.shape[0]], device=logits.device)
            self._chances += logits.log_softmax(-1).gather(1, chosen[:, None])[:, 0].tolist()
            yield None
        judged = self._chances[first - 1 :]
        return sum(judged) / len(judged)

    def _read_with(self, text: str) -> tuple[tuple[int, ...], int]:
        """The prefix's last id, then those of the line, the text and what follows; and which is the text's first."""
        known, behind = self._around.known, self._around.behind
        ids = self._model.tokenizer.encode(known + text + behind[: BEHIND_CHARS + _BORDER_CHARS])
        ends = list(accumulate(len(self._model.tokenizer.decode_bytes([token])) for token in ids))
        first = bisect_right(ends, len(known.encode()))
        count = bisect_right(ends, len((known + text + behind[:BEHIND_CHARS]).encode()))
        return (self._last, *ids[: max(count, first + 1)]), first + 1

    def _step(self, ids: Sequence[int], begin: int) -> torch.Tensor:
        """Logits of ids that stand `begin` places behind the prefix's last one."""
        positions = torch.arange(self._base + begin, self._base + begin + len(ids))
        self.passes += 1
        rows = CanvasRows(torch.tensor(ids), positions, None, adapted=False)
        return self._model.step(self._context, rows)[:, : allowed_ids(self._model)]
