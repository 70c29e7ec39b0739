"""From what a loop tells of its steps to a record: `Watcher`, for passes that draft and verify, and for canvases."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch

from engine.diffusion.canvas_step import CanvasStep
from engine.diffusion.denoise import Pass
from engine.models.base import Tokenizer
from engine.trace.canvas_watching import OTHERS, canvas_step
from engine.trace.recording import State, Step, Token
from engine.trace.spelling import text_alone

MODEL = "the model"
SOURCES = MappingProxyType({"warm_start": "the text that stood there", "ngram": "a repeat in the text"})
"""What a person calls a source of drafts; masks are called masks."""


class Watcher:
    """Records the steps of one job, of whichever loop.

    Of a pass of `diffusion.denoise`: what is settled, the draft and its verdict, the masks' predictions; its tokens
    stand as in a diff, what was refused in front of what took its place. Of a canvas: see `canvas_step`.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # A character may be spread over tokens; the one that completes it shows it.
        self._characters = getincrementaldecoder("utf-8")("replace")
        self._settled: tuple[Token, ...] = ()
        self._last: CanvasStep | None = None
        self.steps: list[Step] = []

    def __call__(self, told: Pass | CanvasStep) -> None:
        """Take in one step."""
        if isinstance(told, Pass):
            self.steps.append(self._pass(told))
        else:
            self.steps.append(canvas_step(self._tokenizer, told, self._last))
            self._last = told

    def _pass(self, told: Pass) -> Step:
        verdicts = Verdicts.of(told.logits)
        kept, refused = told.draft[: told.accepted], told.draft[told.accepted :]
        settling = [*((guess.token, _name(guess.source)) for guess in kept), (told.bonus, MODEL)]
        new = tuple(
            replace(self._judged(verdicts, row, token, source), text=self._next_text(token))
            for row, (token, source) in enumerate(settling)
        )
        # The first one was refused by its own row. Those behind it stood on a wrong text and were not judged.
        first = [
            replace(self._judged(verdicts, told.accepted, guess.token, _name(guess.source)), state="refused")
            for guess in refused[:1]
        ]
        rest = [self._guess(guess.token, "refused", _name(guess.source)) for guess in refused[1:]]
        masks = zip(told.leftover.masks, told.leftover.probabilities, strict=True)
        guesses = [self._guess(token, "open", "masks", chance) for token, chance in masks]
        tokens = (*self._settled, *new[:-1], *first, *rest, new[-1], *guesses)
        self._settled += tuple(replace(token, state="settled") for token in new)
        return Step(tokens, verdicts.mean_entropy(len(new)))

    def _judged(self, verdicts: Verdicts, row: int, token: int, source: str) -> Token:
        others = tuple((text_alone(self._tokenizer, other), chance) for other, chance in verdicts.others(row, token))
        known = self._guess(token, "new", source, verdicts.chance(row, token))
        return replace(known, entropy=verdicts.entropies[row], others=others)

    def _guess(self, token: int, state: State, source: str, chance: float | None = None) -> Token:
        data = self._tokenizer.decode_bytes([token])
        text = data.decode("utf-8", errors="replace")
        return Token(text, state, chance, source=source, kind="text" if data else "end")

    def _next_text(self, token: int) -> str:
        return self._characters.decode(self._tokenizer.decode_bytes([token]))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a pass says of each of its places. chances: [rows, vocab] float32. entropies: nats, one a row."""

    chances: torch.Tensor
    entropies: tuple[float, ...]

    @classmethod
    def of(cls, logits: torch.Tensor) -> Verdicts:
        """logits: [rows, vocab]; minus infinity is a token that cannot be."""
        logarithms = logits.float().log_softmax(-1)
        chances = logarithms.exp()
        entropies = -(chances * logarithms).nan_to_num(0.0).sum(-1)
        return cls(chances, tuple(entropies.tolist()))

    def chance(self, row: int, token: int) -> float:
        """The probability of a token at the place of a row."""
        return float(self.chances[row, token])

    def others(self, row: int, token: int) -> list[tuple[int, float]]:
        """The likeliest tokens but this one, each with its probability."""
        best = self.chances[row].topk(min(OTHERS + 1, self.chances.shape[1]))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(other, chance) for other, chance in pairs if other != token][:OTHERS]

    def mean_entropy(self, rows: int) -> float:
        """Of the first rows, in nats."""
        return sum(self.entropies[:rows]) / rows


def _name(source: str) -> str:
    return SOURCES.get(source, source)


def offered_and_kept(drafts: Sequence[tuple[str, int, int]]) -> tuple[tuple[str, str], ...]:
    """Per source of drafts what became of them, in words."""
    return tuple((f"drafts: {_name(source)}", f"{kept} of {offered} kept") for source, offered, kept in drafts)
