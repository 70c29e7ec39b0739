"""Several holes of a family whose canvas is one hole: their order, and what each sees of the others."""

from __future__ import annotations

import torch

from engine.canvas import Canvas
from engine.diffusion.sampling import SamplingConfig
from engine.models.canvas_model import CanvasJob, Known
from tests.fakes.clock import Clock
from tests.fakes.scripted_canvas import (
    MASK,
    ScriptedCanvasModel,
    denoised,
    hole,
    island,
    peaked,
    scripted_facts,
    text_of,
)

ALONE = scripted_facts(islands=False)
JOB = CanvasJob(Known((1,), (2,)), (hole(2), island("--"), hole(3), island("++"), hole(1)))


def doubting(strengths: dict[int, float]) -> ScriptedCanvasModel:
    """Fills a hole with its own length as a digit; how surely depends on the length."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([48 + canvas.length] * canvas.length, strengths[canvas.length])

    return ScriptedCanvasModel(script, ALONE)


def test_the_hole_of_least_doubt_is_made_first_and_the_results_keep_their_order() -> None:
    model = doubting({2: 5.0, 3: 12.0, 1: 7.0})
    _, result = denoised(model, JOB)
    assert [text_of(part) for part in result.parts] == ["22", "333", "1"]
    # Three looks, then the hole of three; two looks, then the hole of one; then the last.
    made = [model.opened[3], model.opened[6], model.opened[7]]
    assert made[0] == Known((1, MASK, MASK, *b"--"), (*b"++", MASK, 2))
    assert made[1] == Known((1, MASK, MASK, *b"--333++"), (2,))
    assert made[2] == Known((1,), (*b"--333++1", 2))
    assert len(model.opened) == model.closed


def test_other_order_of_doubt_other_order_of_work() -> None:
    model = doubting({2: 12.0, 3: 5.0, 1: 7.0})
    denoised(model, JOB)
    assert model.opened[3] == Known((1,), (*b"--", MASK, MASK, MASK, *b"++", MASK, 2))


def test_at_the_deadline_what_is_made_stays() -> None:
    clock = Clock(1.0)
    model = doubting({2: 1.0, 3: 1.2, 1: 1.1})
    _, result = denoised(model, JOB, SamplingConfig(confidence_threshold=1.0), expired=lambda: clock() >= 1)
    assert (result.stop, result.parts[0], result.parts[2]) == ("deadline", (), ())
    assert text_of(result.parts[1]) == "333"


def test_the_steps_show_what_other_holes_hold_already() -> None:
    steps, result = denoised(doubting({2: 5.0, 3: 12.0, 1: 7.0}), JOB)
    assert steps[-1].drafts() == result.parts
    assert len(steps) == result.steps
