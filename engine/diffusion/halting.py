"""When a canvas is finished, and when the text is: stable and confident, end token, lines, stop text, budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

from engine.diffusion.stopping import Limits, cut_at_lines, cut_at_stop_text, decode_prefix
from engine.models.base import Tokenizer
from engine.protocol.messages import Stop


class StableAndConfident:
    """Finished when the likeliest tokens equal those of the last `stable_steps` steps and the mean entropy is low.

    The rule of DiffusionGemma: the history holds the likeliest canvases of *earlier* steps; stable_steps 0 asks for
    confidence alone; stop_entropy 0 (nats) turns the rule off.
    """

    def __init__(self, stable_steps: int, stop_entropy: float) -> None:
        self._stop_entropy = stop_entropy
        self._history: deque[torch.Tensor] = deque(maxlen=stable_steps)
        self._wanted = stable_steps

    def update(self, likeliest: torch.Tensor, entropy: torch.Tensor, counted: torch.Tensor) -> bool:
        """Take in a step. likeliest: [n] int64; entropy: [n] float32; counted: [n] bool, the places still free.

        Locked places have no entropy and would hide the doubt of the free ones, so the mean is over `counted` only.
        """
        if self._stop_entropy <= 0:
            return False
        stable = len(self._history) == self._wanted and all(torch.equal(past, likeliest) for past in self._history)
        self._history.append(likeliest)
        return stable and bool(entropy[counted].mean() < self._stop_entropy)

    def forget(self) -> None:
        """The canvas was changed from outside: its history says nothing any more."""
        self._history.clear()


def up_to_end(ids: Sequence[int], end_ids: frozenset[int]) -> tuple[tuple[int, ...], bool]:
    """`ids` left of the first end id, and whether there is one: whatever stands right of it is no part of the text."""
    for place, token in enumerate(ids):
        if token in end_ids:
            return tuple(ids[:place]), True
    return tuple(ids), False


def text_stop(ids: Sequence[int], tokenizer: Tokenizer, limits: Limits) -> tuple[int, Stop | None]:
    """How many of `ids` to keep, and why the text ends there; None when no limit is reached.

    The last kept token may reach beyond the cut: ids cannot be cut inside a token, the caller cuts the text.
    """
    keep, stop = len(ids), None
    if limits.max_lines > 0 or limits.stop_text:
        keep, stop = _cut(ids, tokenizer, limits)
    if keep >= limits.max_tokens:
        return limits.max_tokens, "budget" if keep > limits.max_tokens or stop is None else stop
    return keep, stop


def _cut(ids: Sequence[int], tokenizer: Tokenizer, limits: Limits) -> tuple[int, Stop | None]:
    text = decode_prefix(tokenizer.decode_bytes(ids))
    cuts: tuple[tuple[str | None, Stop], ...] = (
        (cut_at_stop_text(text, limits.stop_text), "end"),
        (cut_at_lines(text, limits.max_lines), "lines"),
    )
    found = [(len(cut.encode()), stop) for cut, stop in cuts if cut is not None]
    if not found:
        return len(ids), None
    wanted, reason = min(found)
    size = 0
    for place, token in enumerate(ids):
        if size >= wanted:
            return place, reason
        size += len(tokenizer.decode_bytes((token,)))
    return len(ids), reason
