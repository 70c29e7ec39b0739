"""Other texts for a gap that has one: the likeliest turns the first text did not take, each followed to its end.

One pass over the first text's leading tokens tells, for each place, how likely every other token was there. The
likeliest of these forks over all places (by the probability of everything up to and with the other token) are taken
one after another and denoised greedily on the same resident context. Owns no clock; the caller closes the generator
to cancel and passes a predicate for the deadline. The first text is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import torch

from engine.diffusion.denoise import Denoised, allowed_ids, denoise
from engine.diffusion.stopping import cut_at_lines, decode_prefix
from engine.diffusion.verify import PassLayout, build_rows
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import Context, Denoiser
from engine.prompts import Prompt

# How far into the first text a fork may lie: texts that differ late look the same to who chooses among them.
TRUNK_TOKENS = 6
# Some forks lead to a text that is there already.
TRIES_PER_TEXT = 3


@dataclass(frozen=True, slots=True)
class Fork:
    """Another token behind `depth` tokens of the first text; `score` is the log probability of all of them."""

    depth: int
    token: int
    score: float


def alternatives(
    model: Denoiser,
    context: Context,
    prompt: Prompt,
    first: Denoised,
    count: int,
    config: VerifyConfig,
    expired: Callable[[], bool],
) -> Generator[tuple[str, ...], None, tuple[str, ...]]:
    """Up to `count` texts besides `first`, the likeliest fork first. Yields those found so far after each pass.

    `context` holds the prompt and is left with rows beyond it. Texts that are blank, equal another's but for blanks
    around them, or were cut off by the deadline are left out.
    """
    trunk = _trunk(model, first)
    logits = _forward(model, context, prompt, trunk)
    yield ()
    branches = _Branches(model, context, prompt, first, trunk, config)
    texts = [first.text]
    for fork in likeliest_forks(model, trunk, logits, count * TRIES_PER_TEXT):
        if expired() or len(texts) > count:
            break
        following = branches.follow(fork, expired)
        while True:
            try:
                next(following)
            except StopIteration as finished:
                text: str = finished.value
                break
            yield tuple(texts[1:])
        if text.strip() and all(text.strip() != other.strip() for other in texts):
            texts.append(text)
    return tuple(texts[1:])


def likeliest_forks(model: Denoiser, trunk: Sequence[int], logits: torch.Tensor, count: int) -> list[Fork]:
    """The `count` likeliest other tokens over all places of the trunk and the one behind it, the likeliest first.

    logits: [places, vocab] float32. Tokens that end the text, or end inside a character, are no forks.
    """
    chances = logits[:, : allowed_ids(model)].log_softmax(-1)
    special = model.facts.special.special
    forks = []
    behind = 0.0
    for depth, row in enumerate(chances):
        taken = trunk[depth] if depth < len(trunk) else int(row.argmax())
        values, tokens = row.topk(min(count + len(special) + 1, row.shape[0]))
        pairs = zip(tokens.tolist(), values.tolist(), strict=True)
        forks += [Fork(depth, token, behind + chance) for token, chance in pairs if token not in special | {taken}]
        behind += float(row[taken])
    whole = (fork for fork in sorted(forks, key=_order) if _is_whole(model, (*trunk[: fork.depth], fork.token)))
    return [fork for fork, _ in zip(whole, range(count), strict=False)]


def _order(fork: Fork) -> tuple[float, int, int]:
    """The likeliest first; equal ones in a fixed order, so that equal requests get equal lists."""
    return -fork.score, fork.depth, fork.token


def _trunk(model: Denoiser, first: Denoised) -> tuple[int, ...]:
    """The leading tokens of the first text, as far as the text shows them: what was cut off is no place for a fork."""
    shown = len(first.text.encode())
    trunk = first.settled[:TRUNK_TOKENS]
    while trunk and len(model.tokenizer.decode_bytes(trunk)) > shown:
        trunk = trunk[:-1]
    return trunk


def _is_whole(model: Denoiser, ids: Sequence[int]) -> bool:
    data = model.tokenizer.decode_bytes(ids)
    return len(decode_prefix(data).encode()) == len(data)


def _forward(model: Denoiser, context: Context, prompt: Prompt, trunk: tuple[int, ...]) -> torch.Tensor:
    """Logits of every place of the trunk and the one behind it; its rows stay in the context."""
    context.truncate(prompt.rows)
    layout = PassLayout(prompt.gap.pending, trunk)
    rows = build_rows(layout, prompt.rows, model.facts.mask_id, adapted=prompt.gap.adapted)
    return model.step(context, rows)


class _Branches:
    """Follows forks to their ends. The trunk's rows stay in the context up to the lowest fork taken so far."""

    def __init__(
        self,
        model: Denoiser,
        context: Context,
        prompt: Prompt,
        first: Denoised,
        trunk: tuple[int, ...],
        config: VerifyConfig,
    ) -> None:
        self._model = model
        self._context = context
        self._prompt = prompt
        self._trunk = trunk
        self._config = config
        self._intact = len(trunk)
        # The first text is the best guess at how another one goes on.
        searched = (*prompt.gap.searched, first.settled)
        self._gap = replace(prompt.gap, warm=(), searched=searched)

    def follow(self, fork: Fork, expired: Callable[[], bool]) -> Generator[None, None, str]:
        """The text that begins with the trunk up to the fork and its token; empty when the deadline cut it off."""
        head = (*self._trunk[: fork.depth], fork.token)
        text = decode_prefix(self._model.tokenizer.decode_bytes(head))
        limits = self._prompt.limits
        cut = cut_at_lines(text, limits.max_lines)
        room = limits.max_tokens - len(head)
        if cut is not None or room < 1:
            return text if cut is None else cut
        self._rewind(fork.depth)
        gap = replace(self._gap, pending=fork.token)
        passes = denoise(self._model, self._context, gap, replace(limits, max_tokens=room), self._config, expired)
        while True:
            try:
                next(passes)
            except StopIteration as finished:
                rest: Denoised = finished.value
                break
            yield None
        yield None
        if rest.stop == "deadline":
            return ""
        text += rest.text
        cut = cut_at_lines(text, limits.max_lines)
        return text if cut is None else cut

    def _rewind(self, depth: int) -> None:
        """Leave prompt, pending token and `depth` tokens of the trunk in the context, computing what was lost."""
        base = self._prompt.rows + 1
        if depth > self._intact:
            self._context.truncate(base + self._intact)
            lost = self._trunk[self._intact : depth]
            layout = PassLayout(lost[0], lost[1:])
            adapted = self._prompt.gap.adapted
            rows = build_rows(layout, base + self._intact, self._model.facts.mask_id, adapted=adapted)
            self._model.step(self._context, replace(rows, logit_rows=0))
        self._context.truncate(base + depth)
        self._intact = depth
