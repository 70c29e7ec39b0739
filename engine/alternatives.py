"""Other texts for a gap that has one: the likeliest turns the first text did not take, each followed to its end.

One pass over the first text's leading tokens tells, for each place, how likely every other token was there. The
likeliest of these forks over all places (by the probability of everything up to and with the other token) are taken
one after another and denoised greedily on the same resident context. For who chooses by looking, `alternatives`; for
`engine.best_of`, `likely_turns`. Owns no clock; the caller closes the generator to cancel and passes a predicate for
the deadline. The first text is never changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import torch

from engine.diffusion.denoise import Denoised, allowed_ids, denoise
from engine.diffusion.stopping import cut_at_lines, decode_prefix
from engine.diffusion.verify import PassLayout, build_rows
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import Context, Denoiser
from engine.prompts import Prompt
from engine.protocol.messages import Stop

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


@dataclass(frozen=True, slots=True)
class Turns:
    """Up to `count` turns in the first `depth` tokens, none less likely (with what stands before it) than so."""

    count: int
    depth: int
    least_chance: float


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
    trunk = _trunk(model, first, TRUNK_TOKENS)
    logits = _forward(model, context, prompt, trunk)
    yield ()
    forks = likeliest_forks(model, trunk, logits, count * TRIES_PER_TEXT)
    found = yield from _followed(_Branches(model, context, prompt, first, trunk, config), forks, count, expired)
    return tuple(other.text for other in found)


def likely_turns(
    model: Denoiser,
    context: Context,
    prompt: Prompt,
    first: Denoised,
    turns: Turns,
    config: VerifyConfig,
    expired: Callable[[], bool],
) -> Generator[tuple[str, ...], None, tuple[Denoised, ...]]:
    """As `alternatives`, of forks that lie anywhere in the first `turns.depth` tokens and are likely enough.

    An end is a turn as well, so that a text may stop where the first one went on.
    """
    trunk = _trunk(model, first, turns.depth)
    logits = _forward(model, context, prompt, trunk)
    yield ()
    forks = likeliest_forks(model, trunk, logits, turns.count * TRIES_PER_TEXT, ends=True)
    likely = [fork for fork in forks if fork.score >= math.log(turns.least_chance)]
    branches = _Branches(model, context, prompt, first, trunk, config)
    return (yield from _followed(branches, likely, turns.count, expired))


def _followed(
    branches: _Branches, forks: Sequence[Fork], count: int, expired: Callable[[], bool]
) -> Generator[tuple[str, ...], None, tuple[Denoised, ...]]:
    """The texts of the first forks that lead to one of their own. Yields those found so far after each pass."""
    found: list[Denoised] = []
    known = {branches.first.text.strip()}
    for fork in forks:
        if expired() or len(found) == count:
            break
        following = branches.follow(fork, expired)
        while True:
            try:
                next(following)
            except StopIteration as finished:
                other: Denoised = finished.value
                break
            yield tuple(each.text for each in found)
        if other.stop != "deadline" and other.text.strip() not in {"", *known}:
            known.add(other.text.strip())
            found.append(other)
    return tuple(found)


def likeliest_forks(
    model: Denoiser, trunk: Sequence[int], logits: torch.Tensor, count: int, *, ends: bool = False
) -> list[Fork]:
    """The `count` likeliest other tokens over all places of the trunk and the one behind it, the likeliest first.

    logits: [places, vocab] float32. Tokens that end inside a character are no forks; those that end the text are,
    behind one token or more, if `ends` are wanted.
    """
    chances = logits[:, : allowed_ids(model)].log_softmax(-1)
    special = model.facts.special.special
    forks = []
    behind = 0.0
    for depth, row in enumerate(chances):
        taken = trunk[depth] if depth < len(trunk) else int(row.argmax())
        values, tokens = row.topk(min(count + len(special) + 1, row.shape[0]))
        pairs = zip(tokens.tolist(), values.tolist(), strict=True)
        none = special - model.facts.special.end if ends and depth and taken not in special else special
        forks += [Fork(depth, token, behind + chance) for token, chance in pairs if token not in none | {taken}]
        behind += float(row[taken])
    whole = (fork for fork in sorted(forks, key=_order) if _is_whole(model, (*trunk[: fork.depth], fork.token)))
    return [fork for fork, _ in zip(whole, range(count), strict=False)]


def _order(fork: Fork) -> tuple[float, int, int]:
    """The likeliest first; equal ones in a fixed order, so that equal requests get equal lists."""
    return -fork.score, fork.depth, fork.token


def _trunk(model: Denoiser, first: Denoised, depth: int) -> tuple[int, ...]:
    """The leading tokens of the first text, as far as the text shows them: what was cut off is no place for a fork."""
    shown = len(first.text.encode())
    trunk = first.settled[:depth]
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
        self.first = first
        self._trunk = trunk
        self._config = config
        self._intact = len(trunk)
        # The first text is the best guess at how another one goes on.
        searched = (*prompt.gap.searched, first.settled)
        self._gap = replace(prompt.gap, warm=(), searched=searched)

    def follow(self, fork: Fork, expired: Callable[[], bool]) -> Generator[None, None, Denoised]:
        """What begins with the trunk up to the fork and its token; `stop` is "deadline" where that cut it off."""
        limits, head = self._prompt.limits, self._trunk[: fork.depth]
        if fork.token in self._model.facts.special.end:
            return self._limited(self._begun(head, "end"))
        head = (*head, fork.token)
        begun, room = self._begun(head, "budget"), limits.max_tokens - len(head)
        if cut_at_lines(begun.text, limits.max_lines) is not None or room < 1:
            return self._limited(begun)
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
        tokens, settled = len(head) + rest.tokens, (*head, *rest.settled)
        return self._limited(replace(rest, text=begun.text + rest.text, tokens=tokens, settled=settled))

    def _begun(self, ids: tuple[int, ...], stop: Stop) -> Denoised:
        text = decode_prefix(self._model.tokenizer.decode_bytes(ids))
        return Denoised(text, stop, 0, len(ids) + (stop == "end"), (), ids)

    def _limited(self, made: Denoised) -> Denoised:
        """Within the line limit."""
        cut = cut_at_lines(made.text, self._prompt.limits.max_lines)
        return made if cut is None else replace(made, text=cut, stop="lines")

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
