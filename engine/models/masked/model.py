"""The `masked` family behind the seam of canvas models: `MaskedModel`, for bidirectional and block-causal checkpoints.

Bidirectional: every place sees every other, so that the keys and values of the known text depend on what stands in the
canvas. A step with `refresh` computes all of it; one without reuses what the last refresh left, which is approximate
(the dual cache of Fast-dLLM, Wu et al. 2025, arXiv 2505.22618). A first step always refreshes.

Block-causal: a place sees its own block and all before it, so that the prefix's whole blocks are computed once and are
exact for every step, every canvas and every later request that begins alike.

Both undo the shift of families made from causal models: row i of a prediction is of canvas place i.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from engine.canvas import Canvas
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasContext, CanvasFacts, JobStep, Known, Prediction, StepInput
from engine.models.masked.context import MaskedContext, ResidentPool
from engine.models.masked.families import Layout
from engine.models.masked.pass_rows import PassRows, joined, worth_joining
from engine.runtime.cache import CacheShape, common_prefix, window_exceeded
from engine.runtime.replay import Replayer

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from engine.models.masked.cache import DualCache
    from engine.models.masked.weights import Network

_CHUNK = 512
"""About as many tokens of a prefix are computed at once; a whole number of blocks."""


class MaskedModel:
    """A `CanvasModel` over a stock network. Not thread-safe: the engine's loop owns it.

    start_id: stands in front of an empty prefix of a shifted family, whose first place would have no row to be
    predicted from; -1 where that cannot happen.
    """

    def __init__(
        self, network: Network, layout: Layout, tokenizer: Tokenizer, facts: CanvasFacts, *, start_id: int
    ) -> None:
        self.layout = layout
        self.network = network
        self._tokenizer = tokenizer
        self._facts = facts
        self._start_id = start_id
        self._device = network.lm_head.weight.device
        self.replayer = Replayer.of_device(self._device)
        self._pool = ResidentPool(_cache_shape(network, facts.window_tokens))
        # The argument got its present name in transformers 5.24; the old one warns there.
        takes = inspect.signature(network.model.forward).parameters
        self._cache_argument = "cache" if "cache" in takes else "past_key_values"

    @property
    def facts(self) -> CanvasFacts:
        return self._facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @torch.no_grad()
    def open(self, known: Known) -> MaskedContext:
        """Find what is resident, which only block-causal families have.

        Raises EngineError(window_exceeded); ValueError for text right of the canvas in a family that cannot see it.
        """
        if known.suffix and not self._facts.right_context:
            raise ValueError(f"{self._facts.name} does not see text right of the canvas: make it an island or quote it")
        prefix = known.prefix
        if self.layout.shift and not prefix:
            prefix = (self._start_id,)
        self._require_room(len(prefix) + len(known.suffix) + 1)
        block = self.layout.block
        resident = self._pool.take(prefix if block else ())
        shared = common_prefix(resident.encoded, prefix) if block else 0
        context = MaskedContext(resident, prefix, known.suffix, lead=1 if self.layout.shift else 0)
        context.cached = _last_border(shared, block) if block else 0
        resident.cache.truncate(context.cached)
        del resident.encoded[context.cached :]
        if block:
            context.lead = len(prefix) % block
        return context

    @torch.no_grad()
    def read_on(self, context: CanvasContext) -> bool:
        """Block-causal families compute the prefix's whole blocks here; others wait for the first step, in which the
        known text sees the canvas."""
        return self._read_blocks(self._own(context)) if self.layout.block else False

    @torch.no_grad()
    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        """Canvases keep their order from a refresh to the next one; a step with another number of them is a refresh.

        Raises EngineError(window_exceeded).
        """
        rows = self._rows_of(self._own(context), inputs, refresh=refresh)
        hidden = self._run(rows.context.resident.cache, rows.ids, rows.positions, rows.mask)
        rows.finish()
        return self._predictions(rows.of_canvases(hidden))

    @torch.no_grad()
    def step_together(self, steps: Sequence[JobStep]) -> list[list[Prediction]]:
        """Jobs whose rows are of about one length share a pass, each with its own resident text.

        Raises EngineError(window_exceeded).
        """
        parts = [self._rows_of(self._own(each.context), each.inputs, refresh=each.refresh) for each in steps]
        found: dict[int, list[Prediction]] = {}
        for numbers in worth_joining(parts):
            group = [parts[number] for number in numbers]
            joint = joined(group, self.network.config.num_hidden_layers)
            hidden = joint.split(self._compute(joint.cache, joint.ids, joint.positions, joint.mask))
            places = [part.of_canvases(rows) for part, rows in zip(group, hidden, strict=True)]
            predictions = iter(self._predictions([row for rows in places for row in rows]))
            for number, part in zip(numbers, group, strict=True):
                part.finish()
                found[number] = [next(predictions) for _ in part.lengths]
        return [found[number] for number in range(len(steps))]

    def _predictions(self, places: Sequence[torch.Tensor]) -> list[Prediction]:
        """Of hidden states [n, width] for each canvas."""
        logits = self.network.lm_head(torch.cat(list(places))).float()
        return [Prediction(part) for part in logits.split([rows.shape[0] for rows in places])]

    def _rows_of(self, own: MaskedContext, inputs: Sequence[StepInput], *, refresh: bool) -> PassRows:
        canvases = [given.canvas for given in inputs]
        if not canvases or any(canvas.length == 0 for canvas in canvases):
            raise ValueError("a step needs canvases with at least one place")
        longest = max(canvas.length for canvas in canvases)
        self._require_room(len(own.prefix) + longest + len(own.suffix))
        if self.layout.block:
            self._read_all(own)
            return self._block_rows(own, canvases, longest)
        if refresh or own.lengths is None or len(own.lengths) != len(canvases):
            return self._full_rows(own, canvases, longest)
        return self._reusing_rows(own, canvases, longest)

    @torch.no_grad()
    def step_unconditional(self, context: CanvasContext, inputs: Sequence[StepInput]) -> list[Prediction]:
        """As `step`, with every known token masked: the other half of guidance, as LLaDA has it. Nothing is cached."""
        own, mask = self._own(context), self._facts.mask_id
        before, after = len(own.prefix), len(own.suffix)
        predictions = []
        for given in inputs:
            ids = given.canvas.ids.new_full((1, before + given.canvas.length + after), mask)
            ids[0, before : before + given.canvas.length] = given.canvas.ids
            positions = torch.arange(ids.shape[1], device=self._device)
            visible = self._block_mask(positions, 0) if self.layout.block else None
            hidden = self._run(None, ids, positions[None], visible)
            first = before - 1 if self.layout.shift else before
            rows = hidden[0, first : first + given.canvas.length]
            predictions.append(Prediction(self.network.lm_head(rows).float()))
        return predictions

    @torch.no_grad()
    def commit(self, context: CanvasContext, ids: Sequence[int]) -> None:
        """Raises EngineError(window_exceeded)."""
        own = self._own(context)
        self._require_room(len(own.prefix) + len(ids) + len(own.suffix))
        own.prefix = (*own.prefix, *ids)
        own.lengths = None
        if self.layout.block:
            self._read_all(own)

    def close(self, context: CanvasContext) -> None:
        own = self._own(context)
        own.is_open = False
        self._pool.give_back(own.resident)

    def _full_rows(self, context: MaskedContext, canvases: Sequence[Canvas], longest: int) -> PassRows:
        """All rows: known text of both sides first, whose keys and values stay, then the canvas."""
        resident, cache, lead = context.resident, context.resident.cache, context.lead
        before, after = len(context.prefix), len(context.suffix)
        held = before - lead + after
        cache.truncate(0)
        resident.encoded.clear()
        cache.prepare(len(canvases), before + after + longest)
        known = torch.tensor(
            (*context.prefix[: before - lead], *context.suffix), dtype=torch.int64, device=self._device
        )
        ids = torch.cat((known.expand(len(canvases), -1), self._canvas_rows(context, canvases, longest)), dim=1)
        left = torch.arange(before - lead, device=self._device).expand(len(canvases), -1)
        right = torch.stack([torch.arange(after, device=self._device) + before + each.length for each in canvases])
        middle = torch.arange(before - lead, before + longest, device=self._device).expand(len(canvases), -1)
        mask = self._padding_mask(canvases, held + lead, longest)
        positions = torch.cat((left, right, middle), dim=1)
        return self._pass_rows(context, canvases, ids, positions, mask, first=before + after, keep=held)

    def _reusing_rows(self, context: MaskedContext, canvases: Sequence[Canvas], longest: int) -> PassRows:
        """The rows of the canvas against what the last refresh left; a suffix that moved is turned into its place."""
        cache, lead = context.resident.cache, context.lead
        before, after = len(context.prefix), len(context.suffix)
        cache.prepare(len(canvases), lead + longest)
        for row, (canvas, length) in enumerate(zip(canvases, self._lengths(context), strict=True)):
            if after and canvas.length != length:
                cache.turn(row, before - lead, before - lead + after, *self._angle(canvas.length - length))
        context.lengths = [canvas.length for canvas in canvases]
        positions = torch.arange(before - lead, before + longest, device=self._device).expand(len(canvases), -1)
        mask = self._padding_mask(canvases, cache.held + lead, longest)
        ids = self._canvas_rows(context, canvases, longest)
        return self._pass_rows(context, canvases, ids, positions, mask, first=lead)

    def _block_rows(self, context: MaskedContext, canvases: Sequence[Canvas], longest: int) -> PassRows:
        """The rows behind the prefix's whole blocks: those that share a block with the canvas, and the canvas."""
        cache = context.resident.cache
        places = context.lead + longest
        cache.prepare(len(canvases), places)
        positions = torch.arange(cache.held, cache.held + places, device=self._device)
        padding = self._padding_mask(canvases, cache.held + context.lead, longest)
        visible = _both(self._block_mask(positions, cache.held), padding)
        ids = self._canvas_rows(context, canvases, longest)
        rows = positions.expand(len(canvases), -1)
        return self._pass_rows(context, canvases, ids, rows, visible, first=context.lead)

    def _pass_rows(
        self,
        context: MaskedContext,
        canvases: Sequence[Canvas],
        ids: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        *,
        first: int,
        keep: int = -1,
    ) -> PassRows:
        shift = 1 if self.layout.shift else 0
        lengths = tuple(canvas.length for canvas in canvases)
        return PassRows(context, ids, positions, mask, first - shift, lengths, keep)

    def _read_all(self, context: MaskedContext) -> None:
        """Bring the prefix up to its last block border into the cache; the rest runs with the canvas."""
        while self._read_blocks(context):
            pass

    def _read_blocks(self, context: MaskedContext) -> bool:
        """The next whole blocks of the prefix; whether more are left."""
        resident, cache, block = context.resident, context.resident.cache, self.layout.block
        border = _last_border(len(context.prefix), block)
        context.lead = len(context.prefix) - border
        start = cache.held
        end = min(start + max(block, _last_border(_CHUNK, block)), border)
        if start < end:
            ids = torch.tensor([context.prefix[start:end]], device=self._device)
            positions = torch.arange(start, end, device=self._device)
            cache.prepare(1, end - start)
            self._run(cache, ids, positions[None], self._block_mask(positions, start))
            cache.keep_shared(end - start)
            resident.encoded.extend(context.prefix[start:end])
        return end < border

    def _run(
        self, cache: DualCache | None, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """ids, positions: [rows, n]. mask: bool, to [rows, 1, n, held + n], true where seen. [rows, n, hidden].

        `is_causal=False` must be given to the call: with a mask of None, SDPA would run causally else.
        """
        if cache is None:
            return self._compute(None, ids, positions, mask)
        return self.replayer.run(cache.places_in_memory, partial(self._compute, cache), ids, positions, mask)

    def _compute(
        self, cache: Cache | None, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        given: dict[str, Any] = {self._cache_argument: cache, "use_cache": cache is not None}
        output = self.network.model(
            input_ids=ids, position_ids=positions, attention_mask=mask, is_causal=False, **given
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def _canvas_rows(self, context: MaskedContext, canvases: Sequence[Canvas], longest: int) -> torch.Tensor:
        """[rows, lead + longest] int64; what pads a shorter canvas is hidden by the mask."""
        last = context.prefix[len(context.prefix) - context.lead :]
        rows = torch.full((len(canvases), context.lead + longest), self._facts.mask_id, device=self._device)
        rows[:, : context.lead] = torch.tensor(last, dtype=torch.int64, device=self._device)
        for row, canvas in enumerate(canvases):
            rows[row, context.lead : context.lead + canvas.length] = canvas.ids
        return rows

    def _padding_mask(self, canvases: Sequence[Canvas], known: int, longest: int) -> torch.Tensor | None:
        """[rows, 1, 1, known + longest] bool that hides what pads a canvas; None when all are of one length."""
        if all(canvas.length == longest for canvas in canvases):
            return None
        lengths = torch.tensor([canvas.length for canvas in canvases], device=self._device)
        places = torch.arange(known + longest, device=self._device)
        return (places < known + lengths[:, None])[:, None, None]

    def _block_mask(self, positions: torch.Tensor, held: int) -> torch.Tensor | None:
        """[1, 1, n, held + n] bool, true where a block is the same or earlier; None when that is everywhere.

        The `held` places in front end at a block's border.
        """
        block, places = self.layout.block, positions.shape[0]
        if places <= block:
            return None
        own = positions.div(block, rounding_mode="floor")
        visible = own[None, :] <= own[:, None]
        return torch.cat((visible.new_ones(places, held), visible), dim=1)[None, None]

    def _angle(self, places: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosine and sine, [head_dim] float32, that move a key by so many places."""
        frequencies = self.network.model.rotary_emb.inv_freq.float()
        angle = torch.cat((frequencies, frequencies)) * places
        return angle.cos(), angle.sin()

    def _lengths(self, context: MaskedContext) -> list[int]:
        if context.lengths is None:
            raise RuntimeError("a canvas was run before the known text")
        return context.lengths

    def _own(self, context: CanvasContext) -> MaskedContext:
        if not isinstance(context, MaskedContext) or not context.is_open:
            raise ValueError("the context is not one that this model has open")
        return context

    def _require_room(self, needed: int) -> None:
        if needed > self._facts.window_tokens:
            raise window_exceeded(needed, self._facts.window_tokens)


def _both(left: torch.Tensor | None, right: torch.Tensor | None) -> torch.Tensor | None:
    """Seen by both masks; None sees everything."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _last_border(places: int, block: int) -> int:
    """The last block border at or before `places`."""
    return places // block * block


def _cache_shape(network: Network, window_tokens: int) -> CacheShape:
    config = network.config
    weight = network.lm_head.weight
    return CacheShape(
        layers=config.num_hidden_layers,
        kv_heads=config.num_key_value_heads or config.num_attention_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        window_tokens=window_tokens,
        dtype=weight.dtype,
        device=weight.device,
    )
