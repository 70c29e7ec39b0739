"""The seam of families that denoise a whole canvas at once: `CanvasModel`, with its `Known` text and `Prediction`.

The loop of parallel denoising (`engine.diffusion.parallel`) sees a family only through this file. The causal families
implement `base.Denoiser` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch

from engine.canvas import Canvas
from engine.diffusion.length import LengthCalibration
from engine.models.base import Tokenizer

Noise = Literal["mask", "uniform"]


@dataclass(frozen=True, slots=True)
class CanvasFacts:
    """What the loop needs to know of a model.

    noise: what an undecided place holds: the id `mask_id`, or any id drawn uniformly (then `mask_id` is -1).
    canvas_length: the fixed length of a canvas, 0 when a canvas may have any length up to the window.
    right_context: whether text right of the canvas is seen through `Known.suffix`; else it must be an island in the
        canvas.
    end_ids: ids that end the text. forbidden: [vocab] bool, ids that can never come out: the mask, special ids that do
        not end anything, ids the tokenizer cannot decode; true beyond the tokenizer's vocabulary.
    expand_id, delete_id: of families that were taught to change a hole's length (DreamOn), -1 else.
    block: places of a block for block-causal families, which settle block by block; 0 else.
    trained_steps: the steps of the family's own recipe for a canvas; 0 means one per place.
    exact_cache: whether `step` is exact without `refresh`.
    islands: whether a canvas may hold known text between holes; else holes are made one after another.
    calibration: how sure the model is of gaps by their length; what lengths are compared with.
    """

    name: str
    family: str
    device: str
    precision: str
    vocab_size: int
    window_tokens: int
    noise: Noise
    mask_id: int
    end_ids: frozenset[int]
    forbidden: torch.Tensor
    canvas_length: int = 0
    right_context: bool = True
    expand_id: int = -1
    delete_id: int = -1
    block: int = 0
    trained_steps: int = 0
    exact_cache: bool = True
    islands: bool = True
    calibration: LengthCalibration = field(default_factory=LengthCalibration)


@dataclass(frozen=True, slots=True)
class Known:
    """Token ids outside the canvas, fixed for all its steps: in front of it, and behind it."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of one canvas.

    logits: [places, vocab] float32 where the model lives; row i is of canvas place i, whatever shift the family has.
    conditioning: what the family wants back with the next step of this canvas (self-conditioning, in embedding space:
        [places, hidden]), None where it has none.
    """

    logits: torch.Tensor
    conditioning: torch.Tensor | None = None


class CanvasContext(Protocol):
    """Known text as a family keeps it resident between the steps of a canvas, and between requests."""

    @property
    def cached(self) -> int:
        """How many tokens of the known text were resident already when it was opened."""
        ...


@dataclass(frozen=True, slots=True)
class StepInput:
    """One canvas of a step. temperature divides the logits in self-conditioning, as the family was trained."""

    canvas: Canvas
    conditioning: torch.Tensor | None = None
    temperature: float = 1.0


class CanvasModel(Protocol):
    """A loaded model. Not thread-safe: the engine's loop owns it."""

    @property
    def facts(self) -> CanvasFacts: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def open(self, known: Known) -> CanvasContext:
        """A context for known text, with what is resident of it. Raises EngineError(window_exceeded)."""
        ...

    def read_on(self, context: CanvasContext) -> bool:
        """Compute the next chunk of the known text; whether more of it is left.

        So that a cancel waits for one chunk only. `step` and `commit` compute whatever is left. Families that compute
        known text together with the canvas have nothing to do here.
        """
        ...

    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        """Predict every place of each canvas; the canvases are alternatives for one gap and may differ in length.

        refresh: compute approximate caches anew. Raises EngineError(window_exceeded).
        """
        ...

    def commit(self, context: CanvasContext, ids: Sequence[int]) -> None:
        """Finished text enters the context behind the prefix; the next canvas follows it."""
        ...

    def close(self, context: CanvasContext) -> None:
        """Give a context back; what it holds of the known text may stay resident."""
        ...


@dataclass(frozen=True, slots=True)
class JobStep:
    """The arguments of one job's `CanvasModel.step`."""

    context: CanvasContext
    inputs: tuple[StepInput, ...]
    refresh: bool = False


@runtime_checkable
class JointModel(CanvasModel, Protocol):
    """A model that can take the steps of several jobs in one forward pass, where that costs less than one each."""

    def step_together(self, steps: Sequence[JobStep]) -> list[list[Prediction]]:
        """What `step` gives for each, in order, but for the rounding of a wider pass. No context stands in two steps.

        Raises EngineError(window_exceeded), of whichever step; nothing is lost then: each can be taken alone.
        """
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the text to be made: an island of known `ids`, or a hole.

    warm: what stands in the hole now (warm start). reopen: indices into `warm` that are to be denoised anew; None lets
    the sampler decide from confidence. length: places of the hole when known, 0 when it is to be found: by trying
    `candidates` (with as much of `warm` as each has room for), or a coarse spread where there are none.
    """

    is_hole: bool
    ids: tuple[int, ...] = ()
    warm: tuple[int, ...] = ()
    reopen: frozenset[int] | None = None
    length: int = 0
    candidates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CanvasJob:
    """Text to be made: `parts` in order, holes and islands in turn, between `known` texts."""

    known: Known
    parts: tuple[Part, ...] = field(default=(Part(is_hole=True),))
