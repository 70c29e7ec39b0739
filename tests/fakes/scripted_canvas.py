"""A canvas model without weights: a script says which logits stand at each place, and every call is recorded.

Ids are bytes; behind them come an end token, a mask, expand, delete, and ids that stand for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from engine.canvas import Canvas
from engine.diffusion.constraint import Constraint
from engine.diffusion.parallel import CanvasResult, CanvasStep, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import (
    CanvasContext,
    CanvasFacts,
    CanvasJob,
    CanvasModel,
    Known,
    Part,
    Prediction,
    StepInput,
)
from engine.tokenizer import ByteTokenizer

END, MASK, EXPAND, DELETE, UNDECODABLE, VOCAB = 256, 257, 258, 259, 260, 320

Script = Callable[[Known, Canvas], torch.Tensor]
"""Known text (what was committed is part of its prefix) and a canvas to [places, VOCAB] logits."""


def scripted_facts(**changes: Any) -> CanvasFacts:
    """Facts of a mask family without frills; `changes` override fields."""
    forbidden = torch.zeros(VOCAB, dtype=torch.bool)
    forbidden[MASK:] = True
    base = CanvasFacts(
        name="scripted",
        family="scripted",
        device="cpu",
        precision="fp32",
        vocab_size=VOCAB,
        window_tokens=4096,
        noise="mask",
        mask_id=MASK,
        end_ids=frozenset({END}),
        forbidden=forbidden,
    )
    return replace(base, **changes)


def uniform_facts(**changes: Any) -> CanvasFacts:
    """Facts of a family whose noise is any id."""
    return scripted_facts(**({"noise": "uniform", "mask_id": -1} | changes))


@dataclass
class ScriptedContext:
    known: Known
    cached: int = 0


@dataclass
class ScriptedCanvasModel:
    """Implements `CanvasModel`; `calls` holds the inputs of each step, `refreshed` whether it was to be exact.

    chunks: of known text, each read by one call; `read` counts them.
    """

    script: Script
    facts: CanvasFacts = field(default_factory=scripted_facts)
    tokenizer: ByteTokenizer = field(default_factory=ByteTokenizer)
    calls: list[list[StepInput]] = field(default_factory=list)
    refreshed: list[bool] = field(default_factory=list)
    opened: list[Known] = field(default_factory=list)
    committed: list[tuple[int, ...]] = field(default_factory=list)
    closed: int = 0
    chunks: int = 0
    read: int = 0

    def open(self, known: Known) -> ScriptedContext:
        self.opened.append(known)
        return ScriptedContext(known)

    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        assert isinstance(context, ScriptedContext)
        self.calls.append(list(inputs))
        self.refreshed.append(refresh)
        return [
            Prediction(self.script(context.known, each.canvas), torch.full((each.canvas.length, 1), each.temperature))
            for each in inputs
        ]

    def read_on(self, context: CanvasContext) -> bool:
        self.read += self.chunks > 0
        return self.read < self.chunks

    def commit(self, context: CanvasContext, ids: Sequence[int]) -> None:
        assert isinstance(context, ScriptedContext)
        self.committed.append(tuple(ids))
        context.known = Known((*context.known.prefix, *ids), context.known.suffix)

    def close(self, context: CanvasContext) -> None:
        self.closed += 1


def peaked(ids: Sequence[int], strengths: Sequence[float] | float = 8.0) -> torch.Tensor:
    """[n, VOCAB] logits: `strengths` at each id, 0 elsewhere."""
    logits = torch.zeros(len(ids), VOCAB)
    heights = [strengths] * len(ids) if isinstance(strengths, float) else list(strengths)
    logits[range(len(ids)), list(ids)] = torch.tensor(heights, dtype=torch.float32)
    return logits


def saying(text: str, strengths: Sequence[float] | float = 8.0) -> Script:
    """A script that knows the text of the whole canvas, and the end token behind it."""
    ids = list(text.encode())

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        wanted = (ids + [END] * canvas.length)[: canvas.length]
        heights = strengths if isinstance(strengths, float) else (list(strengths) + [8.0] * canvas.length)
        return peaked(wanted, heights if isinstance(heights, float) else heights[: canvas.length])

    return script


def random_script(seed: int, scale: float = 2.0) -> Script:
    """Logits drawn from the canvas and the seed: the same canvas always reads the same."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        mark = hash((seed, known.prefix, known.suffix, tuple(canvas.ids.tolist()))) % (1 << 62)
        dice = torch.Generator().manual_seed(mark)
        return torch.randn(canvas.length, VOCAB, generator=dice) * scale

    return script


def denoised(
    model: CanvasModel,
    job: CanvasJob,
    config: SamplingConfig | None = None,
    *,
    seed: int = 0,
    limits: Limits | None = None,
    expired: Callable[[], bool] = lambda: False,
    constraint: Constraint | None = None,
) -> tuple[list[CanvasStep], CanvasResult]:
    """Run a job to its end: every step, and the result."""
    config, limits, dice = config or SamplingConfig(), limits or Limits(256), torch.Generator().manual_seed(seed)
    run = denoise_canvas(model, job, config, dice, limits=limits, expired=expired, constraint=constraint)
    steps: list[CanvasStep] = []
    while True:
        try:
            step = next(run)
            steps += [step] if step is not None else []
        except StopIteration as finished:
            return steps, finished.value


def gap(length: int = 0, **changes: Any) -> CanvasJob:
    """A hole of so many places between two known texts."""
    return CanvasJob(Known((1, 2), (3,)), (Part(is_hole=True, length=length, **changes),))


def island(text: str) -> Part:
    return Part(is_hole=False, ids=tuple(text.encode()))


def hole(length: int = 0, **changes: Any) -> Part:
    return Part(is_hole=True, length=length, **changes)


def text_of(ids: Sequence[int]) -> str:
    return bytes(ids).decode()
