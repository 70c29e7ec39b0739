"""Steps of several jobs in one pass, of every family: each job's predictions are those of its own pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.canvas import FREE, Canvas
from engine.canvas_serving.core import CanvasCore
from engine.canvas_serving.startup import Wanted, load_canvas_core
from engine.models.canvas_model import CanvasContext, JobStep, JointModel, Known, Prediction, StepInput
from engine.models.masked.pass_rows import PassRows, worth_joining
from engine.protocol.errors import EngineError
from engine.runtime.joint_cache import stacked_masks
from tests.fakes.checkpoints import writers

LAYOUTS = sorted(writers())
TEXTS = ("def area(a, b):\n    return ", "x = ", "def total(rows):\n    return sum(row[1] for row in rows) +" * 3)
SUFFIX = "\n\nprint(area(2, 3))\n"


@pytest.fixture(scope="module")
def cores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CanvasCore]:
    return {}


@pytest.fixture
def model(request: pytest.FixtureRequest, cores: dict[str, CanvasCore], tmp_path: Path) -> JointModel:
    """A tiny model of the layout named by the test's parameter, loaded once."""
    layout = request.param
    if layout not in cores:
        folder = writers()[layout](tmp_path / layout, 0)
        family = "diffusion_gemma" if layout == "diffusion-gemma" else "masked"
        wanted = Wanted(folder, layout, layout, "cpu", "fp32", 256, 1)
        cores[layout] = load_canvas_core(family, wanted, lambda stage, done: None)
    found = cores[layout].model
    assert isinstance(found, JointModel)
    return found


def opened(model: JointModel) -> list[CanvasContext]:
    """A context for each text; only some have text on the right."""
    suffix = tuple(model.tokenizer.encode(SUFFIX)) if model.facts.right_context else ()
    known = [Known(tuple(model.tokenizer.encode(text)), suffix[: 3 * turn]) for turn, text in enumerate(TEXTS)]
    return [model.open(each) for each in known]


def inputs(model: JointModel, turn: int) -> list[tuple[StepInput, ...]]:
    """Canvases of three jobs: their number and, where the family lets them, their lengths are each job's own."""
    dice = torch.Generator().manual_seed(turn)
    allowed = (~model.facts.forbidden).nonzero().squeeze(-1)
    whole = model.facts.canvas_length

    def canvas(length: int) -> StepInput:
        places = whole or length
        ids = allowed[torch.randint(allowed.shape[0], (places,), generator=dice)]
        if model.facts.mask_id >= 0:
            ids[: places // 2] = model.facts.mask_id
        return StepInput(Canvas.of([(ids.tolist(), FREE)]))

    return [(canvas(5), canvas(3 + turn)), (canvas(4 + turn),), (canvas(6),)]


def same(left: Prediction, right: Prediction) -> None:
    torch.testing.assert_close(left.logits, right.logits, atol=2e-5, rtol=1e-5)
    if right.conditioning is not None:
        assert left.conditioning is not None
        torch.testing.assert_close(left.conditioning, right.conditioning, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("model", LAYOUTS, indirect=True)
def test_a_joint_pass_predicts_what_each_pass_alone_does(model: JointModel) -> None:
    alone, together = opened(model), opened(model)
    for turn in range(3):
        wanted = inputs(model, turn)
        # The second turn reuses what the first one left; then one job's cache is made anew, and the others' are not.
        refresh = [turn == 0, turn == 0, turn != 1]
        steps = [JobStep(*each) for each in zip(together, wanted, refresh, strict=True)]
        joint = model.step_together(steps)
        for context, given, anew, found in zip(alone, wanted, refresh, joint, strict=True):
            expected = model.step(context, given, refresh=anew)
            assert len(found) == len(expected)
            for left, right in zip(found, expected, strict=True):
                same(left, right)
    for context in (*alone, *together):
        model.close(context)


@pytest.mark.parametrize("model", LAYOUTS, indirect=True)
def test_the_order_of_the_answers_is_that_of_the_jobs(model: JointModel) -> None:
    contexts, wanted = opened(model), inputs(model, 0)
    steps = [JobStep(context, given, True) for context, given in zip(contexts, wanted, strict=True)]
    forwards = model.step_together(steps)
    backwards = model.step_together(steps[::-1])[::-1]
    for left, right in zip(forwards, backwards, strict=True):
        for each, other in zip(left, right, strict=True):
            same(each, other)


@pytest.mark.parametrize("model", ["dream", "sdar"], indirect=True)
def test_a_job_that_outgrows_the_window_is_refused_and_the_others_can_go_on_alone(model: JointModel) -> None:
    contexts, wanted = opened(model), inputs(model, 0)
    long = (StepInput(Canvas.of([([model.facts.mask_id] * model.facts.window_tokens, FREE)])),)
    steps = [JobStep(contexts[0], wanted[0], True), JobStep(contexts[1], long, True)]
    with pytest.raises(EngineError, match="window"):
        model.step_together(steps)
    (first, _), again = model.step(contexts[0], wanted[0], refresh=True), opened(model)[0]
    same(first, model.step(again, wanted[0], refresh=True)[0])


def rows(places: int) -> PassRows:
    ids = torch.zeros(1, places, dtype=torch.int64)
    return PassRows(None, ids, ids, None, 0, (places,))  # type: ignore[arg-type]


def test_rows_share_a_pass_with_rows_of_about_their_length() -> None:
    assert worth_joining([rows(10), rows(100), rows(60), rows(9), rows(50)]) == [[1, 2, 4], [0, 3]]
    assert worth_joining([rows(7)]) == [[0]]


def test_what_pads_a_mask_is_seen_by_nobody_and_sees_one_place() -> None:
    small = torch.ones(1, 1, 2, 3, dtype=torch.bool)
    wide = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    stacked = stacked_masks([small, wide], 4, 5)
    assert stacked.shape == (3, 1, 4, 5)
    assert stacked[0, 0].tolist() == [[True] * 3 + [False] * 2] * 2 + [[True] + [False] * 4] * 2
    assert bool(stacked[1:].all())
