"""`DiffusionGemmaModel`: the family behind the seam of canvas models."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.canvas import Canvas
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasContext, CanvasFacts, JobStep, Known, Prediction, StepInput
from engine.models.diffusion_gemma.network import CanvasRows, GemmaNetwork
from engine.models.diffusion_gemma.resident import GemmaContext, ResidentShape
from engine.runtime.cache import ContextPool, window_exceeded

CHUNK = 256
"""Rows of known text that are encoded together: as many as a canvas has, so a pass of each takes about as long."""


class DiffusionGemmaModel:
    """A `CanvasModel`. A locked place's logits are 0 for its id and -inf else, and its conditioning is that id's.

    Known text is encoded in chunks whose borders are whole numbers of `chunk` rows, and a row counts as resident only
    where it would be computed in the same pass again: rounding differs with the number of rows of a pass, and the text
    must not depend on what an earlier request left behind.

    filler: the id that fills a canvas shorter than the trained length, locked: an end of text. contexts: how many
    prefixes of the window's length fit the memory of resident ones.
    """

    def __init__(
        self,
        network: GemmaNetwork,
        tokenizer: Tokenizer,
        facts: CanvasFacts,
        *,
        filler: int,
        contexts: int = 2,
        chunk: int = CHUNK,
    ) -> None:
        self._network = network
        self._tokenizer = tokenizer
        self._facts = facts
        self._filler = filler
        self._chunk = chunk
        self._forbidden = facts.forbidden.to(network.device) if bool(facts.forbidden.any()) else None
        shape = ResidentShape(network.layer_shapes, network.dtype, network.device)
        self._pool = ContextPool(lambda: GemmaContext(shape), contexts * shape.bytes_of(facts.window_tokens))

    @property
    def facts(self) -> CanvasFacts:
        return self._facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def network(self) -> GemmaNetwork:
        """The two passes and the embeddings."""
        return self._network

    def open(self, known: Known) -> GemmaContext:
        """Find what is resident. Raises EngineError(window_exceeded), ValueError for text on the right."""
        if known.suffix:
            raise ValueError("this family sees text on the right only as an island in the canvas")
        self._require_room(len(known.prefix))
        context = self._pool.context_for(known.prefix)
        # The last chunk is rarely whole: of the very same text it would be computed alike again, of another one not.
        alike = [end for end in context.borders if end % self._chunk == 0 or end == len(known.prefix)]
        context.truncate(max(alike, default=0))
        context.cached = len(context.encoded)
        context.unread = known.prefix[context.cached :]
        return context

    def read_on(self, context: CanvasContext) -> bool:
        """Encode the next chunk."""
        mine = _own(context)
        ids, rest = mine.unread[: self._chunk], mine.unread[self._chunk :]
        if ids:
            self._network.encode(mine.cache, ids)
            mine.remember(ids)
            mine.unread = rest
        return bool(rest)

    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        """Predict each canvas; all of them in one pass. Raises ValueError for a canvas longer than the trained one."""
        del refresh  # the cache is exact
        if not inputs:
            return []
        rows = self._rows(_own(context), inputs)
        return self._predictions(inputs, self._network.predict(rows.cache, rows.ids, rows.soft))

    def step_together(self, steps: Sequence[JobStep]) -> list[list[Prediction]]:
        """As `step` for each of several jobs, whose canvases are all of one length here; in one pass."""
        rows = [self._rows(_own(each.context), each.inputs) for each in steps]
        hidden = self._network.predict_together(rows)
        return [self._predictions(each.inputs, found) for each, found in zip(steps, hidden, strict=True)]

    def _rows(self, context: GemmaContext, inputs: Sequence[StepInput]) -> CanvasRows:
        length = self._facts.canvas_length
        longest = max(given.canvas.length for given in inputs)
        if longest > length or min(given.canvas.length for given in inputs) == 0:
            raise ValueError(f"a canvas of this model holds 1 to {length} places")
        self._read_all(context)
        context.cache.reserve(len(inputs) * length)
        ids = torch.stack([self._filled(given.canvas.ids) for given in inputs])
        soft = torch.stack([self._soft(given) for given in inputs])
        return CanvasRows(context.cache, ids, soft)

    def _predictions(self, inputs: Sequence[StepInput], hidden: torch.Tensor) -> list[Prediction]:
        return [self._prediction(given, rows) for given, rows in zip(inputs, hidden, strict=True)]

    def commit(self, context: CanvasContext, ids: Sequence[int]) -> None:
        """Encode finished text behind the prefix. Raises EngineError(window_exceeded) if no canvas fits behind it."""
        mine = _own(context)
        self._read_all(mine)
        self._require_room(mine.cache.length + len(ids))
        if ids:
            self._network.encode(mine.cache, ids)

    def close(self, context: CanvasContext) -> None:
        """Give a context back. The known text stays resident; what was committed goes, as its passes were others."""
        mine = _own(context)
        mine.unread = ()
        self._pool.release(mine)

    def _read_all(self, context: GemmaContext) -> None:
        while self.read_on(context):
            pass

    def _require_room(self, known: int) -> None:
        needed = known + self._facts.canvas_length
        if needed > self._facts.window_tokens:
            raise window_exceeded(needed, self._facts.window_tokens)

    def _filled(self, ids: torch.Tensor) -> torch.Tensor:
        """`ids` [n] as a canvas of the trained length on the model's device."""
        missing = self._facts.canvas_length - ids.shape[0]
        return torch.nn.functional.pad(ids.to(self._network.device), (0, missing), value=self._filler)

    def _soft(self, given: StepInput) -> torch.Tensor:
        """[canvas_length, hidden] soft embeddings: zero in a first step, and behind a short canvas the filler's."""
        network, length = self._network, self._facts.canvas_length
        if given.conditioning is None:
            return torch.zeros((length, network.width), dtype=network.dtype, device=network.device)
        known = given.conditioning.to(device=network.device, dtype=network.dtype)
        missing = torch.full((length - known.shape[0],), self._filler, dtype=torch.int64, device=network.device)
        return torch.cat([known, network.embeddings(missing)])

    def _prediction(self, given: StepInput, hidden: torch.Tensor) -> Prediction:
        canvas = given.canvas.moved_to(self._network.device)
        logits = self._network.logits(hidden[: canvas.length])
        if self._forbidden is not None:
            logits.masked_fill_(self._forbidden, float("-inf"))
        clamp_locked(logits, canvas)
        soft = self._network.soft_embeddings(logits, given.temperature)
        certain = torch.where(canvas.locked[:, None], self._network.embeddings(canvas.ids), soft)
        return Prediction(logits, certain)


def clamp_locked(logits: torch.Tensor, canvas: Canvas) -> None:
    """Make the rows of locked places certain, in place: 0 for the id that stands there, -inf for every other.

    Their entropy is then 0, whatever temperature divides them.
    """
    logits.masked_fill_(canvas.locked[:, None], float("-inf"))
    present = canvas.ids[:, None]
    logits.scatter_(1, present, torch.where(canvas.locked[:, None], 0.0, logits.gather(1, present)))


def _own(context: CanvasContext) -> GemmaContext:
    if not isinstance(context, GemmaContext):
        raise TypeError(f"{type(context).__name__} is not a context of this model")
    return context
