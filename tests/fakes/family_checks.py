"""What every family that denoises canvases must keep: see "A family in a day" in ARCHITECTURE.md."""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch

from engine.canvas import FREE, LOCKED, Canvas
from engine.diffusion.parallel import CanvasResult, CanvasStep, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, CanvasModel, Known, Part, StepInput

PREFIX, SUFFIX, ISLAND = "def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n", "\n    "


def check_family(model: CanvasModel, config: SamplingConfig) -> None:
    """Every check. The model may be random: nothing is asked of what it says, all of how it says it."""
    check_steps(model)
    check_texts(model, config)
    check_islands(model, config)
    check_commit(model)


def check_steps(model: CanvasModel) -> None:
    """One row of logits for every place, the same each time, of each canvas whatever stands beside it."""
    facts = model.facts
    context = model.open(_known(model))
    lengths = (facts.canvas_length,) if facts.canvas_length else (3, 7)
    canvases = [StepInput(_noise(model, length)) for length in lengths]
    together = model.step(context, canvases, refresh=True)
    assert [prediction.logits.shape for prediction in together] == [(length, facts.vocab_size) for length in lengths]
    assert not any(prediction.logits.isnan().any() for prediction in together)
    assert all((prediction.logits.amax(-1) > -torch.inf).all() for prediction in together)
    for alone, prediction in zip(canvases, together, strict=True):
        again = model.step(context, [alone], refresh=True)[0]
        torch.testing.assert_close(again.logits, prediction.logits, atol=1e-3, rtol=1e-3)
    model.close(context)


def check_texts(model: CanvasModel, config: SamplingConfig) -> None:
    """The same request gives the same text, and no id that may not come out."""
    job = CanvasJob(_known(model), (Part(is_hole=True, length=_places(model)),))
    first, second = _made(model, job, config), _made(model, job, config)
    assert first == second
    assert not model.facts.forbidden[list(first.parts[0])].any()
    assert not model.facts.end_ids & set(first.parts[0])


def check_islands(model: CanvasModel, config: SamplingConfig) -> None:
    """Known text on the canvas comes back unchanged after every step, and two holes give two texts."""
    island = tuple(model.tokenizer.encode(ISLAND))
    hole = Part(is_hole=True, length=2)
    job = CanvasJob(_known(model), (hole, Part(is_hole=False, ids=island), hole))
    steps = denoise_canvas(model, job, config, _dice(model), limits=Limits(64), expired=lambda: False)
    # What a canvas shows of the island: all of it, or the piece that falls into a block.
    pieces = {island[a:b] for a in range(len(island)) for b in range(a, len(island) + 1)}
    made = _followed(steps, lambda step: tuple(step.canvas.ids[step.canvas.locked].tolist()) in pieces)
    assert len(made.parts) == 2


def check_commit(model: CanvasModel) -> None:
    """What was committed stands in front of the next canvas, as if it had been known. Blocks are committed whole."""
    ids = tuple(model.tokenizer.encode("a + b" * 16))[: model.facts.block or 5]
    known = _known(model)
    grown = model.open(known)
    model.commit(grown, ids)
    whole = model.open(Known((*known.prefix, *ids), known.suffix))
    canvas = StepInput(_noise(model, model.facts.canvas_length or 4))
    (left,), (right,) = (model.step(context, [canvas], refresh=True) for context in (grown, whole))
    torch.testing.assert_close(left.logits, right.logits, atol=1e-3, rtol=1e-3)
    model.close(grown)
    model.close(whole)


def _known(model: CanvasModel) -> Known:
    prefix, suffix = (tuple(model.tokenizer.encode(text)) for text in (PREFIX, SUFFIX))
    return Known(prefix, suffix if model.facts.right_context else ())


def _places(model: CanvasModel) -> int:
    return min(8, model.facts.canvas_length or 8)


def _noise(model: CanvasModel, length: int) -> Canvas:
    """A canvas with nothing decided but its last place."""
    facts = model.facts
    noise = facts.mask_id if facts.noise == "mask" else 7
    last = tuple(model.tokenizer.encode("x"))[:1]
    return Canvas.of([((noise,) * (length - 1), FREE), (last, LOCKED)], facts.device)


def _dice(model: CanvasModel) -> torch.Generator:
    return torch.Generator().manual_seed(1)


def _made(model: CanvasModel, job: CanvasJob, config: SamplingConfig) -> CanvasResult:
    steps = denoise_canvas(model, job, config, _dice(model), limits=Limits(64), expired=lambda: False)
    return _followed(steps, lambda _step: True)


def _followed(
    steps: Generator[CanvasStep | None, None, CanvasResult], holds: Callable[[CanvasStep], bool]
) -> CanvasResult:
    """The end of the steps, each of which was looked at."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            result: CanvasResult = end.value
            return result
        assert step is None or holds(step)
