"""Passes recorded and replayed: when, with which inputs, and that a model's steps come out the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from engine.canvas import FREE, Canvas
from engine.models.canvas_model import CanvasModel, Known, StepInput
from engine.models.diffusion_gemma.loading import load_diffusion_gemma
from engine.models.masked.loading import load_masked
from engine.runtime.replay import MOST, CudaGraphs, Replayer
from tests.fakes.checkpoints import writers
from tests.fakes.recorder import Recomputing

Watched = Callable[[Replayer], CanvasModel]
LAYOUTS = ("dream", "llada", "sdar", "diffusion-gemma")


def plus(one: torch.Tensor, other: torch.Tensor | None) -> torch.Tensor:
    return one + (0 if other is None else other)


def test_the_second_pass_of_a_key_is_recorded_and_later_ones_replayed_with_fresh_inputs() -> None:
    tape = Recomputing()
    replayer = Replayer(tape)
    for turn in range(5):
        found = replayer.run("key", plus, torch.full((3,), float(turn)), torch.ones(3))
        assert found.tolist() == [turn + 1.0] * 3
    assert (tape.recorded, tape.replayed) == (1, 4)


@pytest.mark.parametrize(
    ("key", "inputs"),
    [
        ("other", (torch.ones(3), torch.ones(3))),
        ("key", (torch.ones(4), torch.ones(4))),
        ("key", (torch.ones(3, dtype=torch.float64), torch.ones(3))),
        ("key", (torch.ones(3), None)),
    ],
)
def test_another_key_shape_or_type_is_another_pass(key: str, inputs: tuple[torch.Tensor, torch.Tensor | None]) -> None:
    tape = Recomputing()
    replayer = Replayer(tape)
    for _ in range(2):
        replayer.run("key", plus, torch.ones(3), torch.ones(3))
    assert torch.equal(replayer.run(key, plus, *inputs), plus(*inputs))
    assert (tape.recorded, tape.replayed) == (1, 1)


def test_few_recordings_are_kept_and_the_one_used_last_stays() -> None:
    tape = Recomputing()
    replayer = Replayer(tape)
    for key in [*range(MOST), 0, *range(MOST), 0, MOST, MOST]:
        replayer.run(key, plus, torch.ones(2), None)
    assert (replayer.recordings, tape.recorded) == (MOST, MOST + 1)
    replayer.run(0, plus, torch.ones(2), None)
    assert tape.recorded == MOST + 1


def test_what_cannot_be_recorded_is_computed_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    replayer = Replayer(Recomputing(fails=True))
    for turn in range(4):
        assert replayer.run("key", plus, torch.full((2,), float(turn)), None).tolist() == [turn, turn]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_cpu_computes_and_a_gpu_records() -> None:
    assert Replayer.of_device(torch.device("cpu"))._recorder is None
    assert isinstance(Replayer.of_device(torch.device("cuda"))._recorder, CudaGraphs)


@pytest.fixture(params=LAYOUTS, scope="module")
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A model of a layout whose steps run by the replayer given."""
    folder = tmp_path_factory.mktemp("replay") / request.param
    writers()[request.param](folder, 0)

    def loaded(replayer: Replayer) -> CanvasModel:
        if request.param == "diffusion-gemma":
            gemma = load_diffusion_gemma(folder, threads=1).model
            gemma.network.replay_with(replayer)
            return gemma
        masked = load_masked(folder, layout=request.param).model
        masked.replayer = replayer
        return masked

    return loaded


def walk(model: CanvasModel) -> list[torch.Tensor]:
    """The logits of steps as jobs make them: of growing canvases, over two texts in turn, with a commit between."""
    first = Known(tuple(range(5, 45)), (7, 8) if model.facts.right_context else ())
    second = Known(tuple(range(9, 49)))
    places = model.facts.canvas_length or 8
    found = []
    contexts = [model.open(first), model.open(second)]
    for turn in range(8):
        for context in contexts:
            canvas = Canvas.of([([10 + turn] * (places - (turn > 5)), FREE)])
            (prediction,) = model.step(context, [StepInput(canvas)], refresh=turn % 4 == 0)
            found.append(prediction.logits.clone())
        if turn == 3:
            model.commit(contexts[0], [11, 12, 13])
    return found


def equal(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(left, right, strict=True))


def test_replayed_steps_are_the_steps_of_a_model_that_computes_each(watched: Watched) -> None:
    tape = Recomputing()
    assert equal(walk(watched(Replayer(tape))), walk(watched(Replayer(None))))
    assert tape.replayed > 2
