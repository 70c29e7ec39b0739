"""`HybridDenoiser`: a causal model of the Qwen2 shape that can also draft masked canvases, on one key-value cache.

Owns rows: their embedding, what they see, which weights they run through, which logits come back. The arithmetic
is `network`'s, memory is `runtime.cache`'s, files are `loading`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from engine.models.base import CanvasRows, Context, ModelFacts, Tokenizer
from engine.models.network import RowPlan, Stack, run_stack
from engine.models.packed_network import PackedStack, kernel_of
from engine.models.shape import Qwen2Shape
from engine.protocol.errors import EngineError
from engine.runtime.attention import RotaryTable
from engine.runtime.cache import MOST_BYTES, CachedContext, CacheShape, ContextPool, KeyValueCache, window_exceeded
from engine.runtime.embedding import Embedding
from engine.runtime.linear import Linear

MASK_ID = -1
_ROWS_PER_PASS = 128
"""Rows of a long prompt computed at once: wide enough to be efficient, narrow enough to keep memory small."""


_Runner = Callable[[RotaryTable, torch.Tensor, RowPlan, KeyValueCache, int], torch.Tensor]
"""Rows through the layers of a stack: `network.run_stack` of one stack, however it is done."""


@dataclass(frozen=True, slots=True)
class HybridWeights:
    """`adapted` and mask_embedding [hidden] come from the adapter."""

    shape: Qwen2Shape
    embedding: Embedding
    plain: Stack
    head: Linear
    adapted: Stack | None = None
    mask_embedding: torch.Tensor | None = None


class HybridDenoiser:
    """A `Denoiser` over `HybridWeights`. Not thread-safe.

    cache_bytes: what the keys and values resident between requests may take; see `ContextPool`.
    Logits are inference-mode tensors: read them, do not change them in place outside `torch.inference_mode`.
    """

    def __init__(
        self,
        weights: HybridWeights,
        tokenizer: Tokenizer,
        facts: ModelFacts,
        *,
        cache_dtype: torch.dtype = torch.float32,
        cache_bytes: int = MOST_BYTES,
    ) -> None:
        shape = weights.shape
        device = torch.device(facts.device)
        self._weights = weights
        self._tokenizer = tokenizer
        self._facts = facts
        self._rotary = RotaryTable(shape.head_dim, shape.rope_theta, facts.window_tokens, device)
        self._plain = _runner(weights.plain, shape)
        self._adapted = _runner(weights.adapted, shape) if weights.adapted is not None else self._plain
        cache = CacheShape(shape.layers, shape.kv_heads, shape.head_dim, facts.window_tokens, cache_dtype, device)
        self._pool = ContextPool(partial(CachedContext, cache), cache_bytes)

    @property
    def facts(self) -> ModelFacts:
        return self._facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def context_for(self, ids: Sequence[int]) -> CachedContext:
        """See `Denoiser.context_for`. Only rows that came from `encode` are ever matched."""
        with torch.inference_mode():
            return self._pool.context_for(ids)

    def spare_context_for(self, ids: Sequence[int]) -> CachedContext | None:
        """See `Denoiser.spare_context_for`."""
        with torch.inference_mode():
            return self._pool.spare_context_for(ids)

    def release(self, context: Context) -> None:
        """See `Denoiser.release`."""
        self._pool.release(_own(context))

    def encode(self, context: Context, ids: Sequence[int]) -> None:
        """See `Denoiser.encode`. Raises EngineError(window_exceeded) before anything is computed."""
        own = _own(context)
        if own.length + len(ids) > self._facts.window_tokens:
            raise window_exceeded(own.length + len(ids), self._facts.window_tokens)
        for start in range(0, len(ids), _ROWS_PER_PASS):
            piece = list(ids[start : start + _ROWS_PER_PASS])
            positions = torch.arange(own.length, own.length + len(piece))
            rows = CanvasRows(torch.tensor(piece), positions, visible=None, adapted=False, logit_rows=0)
            self._run(own, rows)
            own.remember(piece)

    def step(self, context: Context, rows: CanvasRows) -> torch.Tensor:
        """See `Denoiser.step`. Raises EngineError(window_exceeded), (bad_request) for rows that make no sense."""
        return self._run(_own(context), rows)

    def _run(self, context: CachedContext, rows: CanvasRows) -> torch.Tensor:
        count = rows.ids.shape[0]
        wanted = count if rows.logit_rows is None else min(rows.logit_rows, count)
        self._require_sound(rows)
        weights = self._weights
        run = self._adapted if rows.adapted else self._plain
        with torch.inference_mode():
            context.cache.reserve(count)
            plan = self._plan(context, rows)
            hidden = self._embedded(rows.ids.to(self._facts.device))
            last = run(self._rotary, hidden, plan, context.cache, wanted)
            context.cache.advance(count)
            return weights.head(last) if wanted else last.new_zeros(0, self._facts.vocab_size)

    def _require_sound(self, rows: CanvasRows) -> None:
        if rows.ids.shape[0] == 0 or rows.ids.shape != rows.positions.shape:
            raise _bad_rows(f"{tuple(rows.ids.shape)} ids at {tuple(rows.positions.shape)} positions")
        if int(rows.positions.min()) < 0:
            raise _bad_rows("a position is negative")
        furthest = int(rows.positions.max())
        if furthest >= self._facts.window_tokens:
            raise window_exceeded(furthest + 1, self._facts.window_tokens)
        lowest_id = MASK_ID if self._facts.can_draft else 0
        if int(rows.ids.min()) < lowest_id or int(rows.ids.max()) >= self._facts.vocab_size:
            raise _bad_rows("an id is outside the vocabulary")
        if rows.visible is not None:
            _require_sound_mask(rows.visible, rows.ids.shape[0])

    def _plan(self, context: CachedContext, rows: CanvasRows) -> RowPlan:
        count, start = rows.ids.shape[0], context.length
        seen = torch.zeros(count, context.cache.padded(count), dtype=torch.bool)
        seen[:, :start] = True
        among = torch.ones(count, count, dtype=torch.bool).tril_() if rows.visible is None else rows.visible
        seen[:, start : start + count] = among
        bias = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
        return RowPlan(rows.positions.to(self._facts.device), bias.to(self._facts.device))

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        embedded = self._weights.embedding(ids.clamp_min(0))
        if self._weights.mask_embedding is None:
            return embedded
        return torch.where((ids == MASK_ID)[:, None], self._weights.mask_embedding, embedded)


def _runner(stack: Stack, shape: Qwen2Shape) -> _Runner:
    if kernel_of(stack, shape) is not None:
        return PackedStack(stack, shape).run
    return partial(run_stack, stack, shape)


def _own(context: Context) -> CachedContext:
    if not isinstance(context, CachedContext):
        raise TypeError(f"a context of another family: {type(context).__name__}")
    return context


def _require_sound_mask(visible: torch.Tensor, count: int) -> None:
    if tuple(visible.shape) != (count, count):
        raise _bad_rows(f"a mask of {tuple(visible.shape)} for {count} rows")
    if not bool(visible.diagonal().all()):
        raise _bad_rows("a row does not see itself")


def _bad_rows(fault: str) -> EngineError:
    return EngineError("bad_request", f"the step's rows make no sense: {fault}", "report this as a bug of the engine")
