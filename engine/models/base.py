"""The seam a model family implements: `Denoiser`, with its `Context`, `Tokenizer` and `ModelFacts`.

The denoising loop (`engine.diffusion`) sees a family only through this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.diffusion.confidence import MaskConfidence


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """Token ids with a meaning of their own. None of them can be produced by encoding a user's text.

    `end` holds every id that ends a gap or an answer; `special` holds all of them, `end` included.
    """

    fim_prefix: int
    fim_suffix: int
    fim_middle: int
    chat_start: int
    chat_end: int
    end: frozenset[int]
    special: frozenset[int]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the denoising loop and the router need to know of a model.

    `mask_id` is the row id that stands for a mask (never a vocabulary id); `confidence` says what masks' predictions
    are worth when mask rows are trained, that is, when an adapter with a mask embedding is loaded, and is None else.
    """

    name: str
    family: str
    device: str
    precision: str
    adapter: str
    vocab_size: int
    window_tokens: int
    mask_id: int
    confidence: MaskConfidence | None
    special: SpecialIds

    @property
    def can_draft(self) -> bool:
        """Whether mask rows are trained."""
        return self.confidence is not None


class Tokenizer(Protocol):
    """Text to ids and back. Special tokens' text in the input is text, never a special id."""

    def encode(self, text: str) -> list[int]:
        """Ids of `text`; `decode_bytes` of them gives back `text` exactly, byte for byte in UTF-8."""
        ...

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The UTF-8 bytes of `ids`; special ids have no bytes. May end inside a character."""
        ...


class Context(Protocol):
    """Keys and values of a row of tokens, resident between requests."""

    @property
    def length(self) -> int:
        """How many rows are resident."""
        ...

    def truncate(self, length: int) -> None:
        """Forget all rows from `length` on. Raises ValueError if fewer are resident."""
        ...


@dataclass(frozen=True, slots=True)
class CanvasRows:
    """Rows of one denoising step.

    ids: [n] int64, `ModelFacts.mask_id` for a mask. positions: [n] int64, absolute.
    visible: [n, n] bool, row i sees row j of the same step; None means causal. Every row sees the whole context.
    logit_rows: how many leading rows' logits are wanted; None means all.
    adapted: run with the family's adapter (middle rows of a fill); False for chat and prompts.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    visible: torch.Tensor | None
    adapted: bool
    logit_rows: int | None = None


class Denoiser(Protocol):
    """A loaded model. Not thread-safe: the engine's loop owns it."""

    @property
    def facts(self) -> ModelFacts: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def context_for(self, ids: Sequence[int]) -> Context:
        """A context holding the longest resident common prefix of `ids` (at most `len(ids)` rows), ready to extend.

        The caller owns it until `release`: jobs are interleaved, so a context in use is never matched or recycled
        for another. What was not used for longest makes room when all of them take too much memory.
        """
        ...

    def spare_context_for(self, ids: Sequence[int]) -> Context | None:
        """As `context_for`, for work that nobody waits for; None when `ids` are resident or memory is short.

        Contexts used lately stay as they are.
        """
        ...

    def release(self, context: Context) -> None:
        """Give a context back. Its prompt rows stay resident for reuse; rows added by `step` are forgotten."""
        ...

    def encode(self, context: Context, ids: Sequence[int]) -> None:
        """Append `ids` to the context causally, without the adapter. Raises EngineError(window_exceeded)."""
        ...

    def step(self, context: Context, rows: CanvasRows) -> torch.Tensor:
        """Run `rows` on top of the context and return float32 logits [rows, vocab] on the CPU or device.

        The rows' keys and values are appended in row order; `context.truncate` forgets those that were not accepted.
        """
        ...
