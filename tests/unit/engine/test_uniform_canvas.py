"""Uniform noise: the loop equals DiffusionGemma's own, draw for draw, on scripted logits."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
import torch

from engine.canvas import Canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, Known
from tests.fakes.scripted_canvas import (
    VOCAB,
    Script,
    ScriptedCanvasModel,
    denoised,
    hole,
    island,
    peaked,
    random_script,
    saying,
    uniform_facts,
)

PLACES, STEPS, END_ID = 16, 10, 255
FACTS = uniform_facts(
    canvas_length=PLACES,
    trained_steps=STEPS,
    forbidden=torch.zeros(VOCAB, dtype=torch.bool),
    end_ids=frozenset({END_ID}),
)


@dataclass(frozen=True)
class Settings:
    stable_steps: int
    stop_entropy: float
    bound: float


def drifting(seed: int, scale: float) -> Script:
    """Random logits that lean to what stands in the canvas, so that some canvases come to rest and others do not."""
    base = random_script(seed, scale)

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = base(known, canvas)
        logits[:, 7] += scale * 3 * float(canvas.ids.sum() % 3 == 0)
        logits[:, :200:3] += 2
        return logits

    return script


def reference(seed: int, script: Script, asked: Settings, canvases: int) -> tuple[list[int], int]:
    """The loop of transformers with its own sampler, temperature and stop, over the script's logits."""
    # Untyped here: its annotations name tensor classes that no tensor has.
    gemma: Any = import_module("transformers.models.diffusion_gemma.generation_diffusion_gemma")
    torch.manual_seed(seed)
    sampler = gemma.EntropyBoundSampler(gemma.EntropyBoundSamplerConfig(asked.bound), PLACES, VOCAB, STEPS)
    stop = gemma.StableAndConfidentStoppingCriteria(asked.stable_steps, asked.stop_entropy)
    temper = gemma.LinearTemperatureScheduleLogitsProcessor(0.4, 0.8, STEPS)
    text: list[int] = []
    passes = 0
    for _ in range(canvases):
        canvas = sampler.initialize_canvas(1, torch.device("cpu"))
        stop.reset()
        for remaining in range(STEPS, 0, -1):
            step = torch.tensor(remaining, dtype=torch.int32)
            state = torch.zeros(PLACES, dtype=torch.uint8)
            raw = script(Known((1, 2, *text)), Canvas(canvas[0], state, torch.zeros(PLACES)))[None]
            passes += 1
            logits = temper(None, raw, cur_step=step)
            probs = torch.softmax(logits, dim=-1, dtype=torch.float32)
            drawn = torch.multinomial(probs[0], num_samples=1).T
            likeliest = logits.argmax(dim=-1)
            canvas = sampler.renoise_canvas(sampler.accept_canvas(canvas, drawn, logits, step), step)
            if bool(stop(likeliest, logits).all()):
                break
        text += likeliest[0].tolist()
        if END_ID in text:
            return text[: text.index(END_ID)], passes
    return text, passes


@pytest.mark.parametrize("stable_steps", [0, 1, 2])
@pytest.mark.parametrize(("stop_entropy", "scale"), [(0.005, 6.0), (2.0, 6.0), (3.5, 2.0)])
@pytest.mark.parametrize("bound", [0.1, 3.0])
def test_the_loop_equals_diffusion_gemma_s_token_for_token(
    stable_steps: int, stop_entropy: float, scale: float, bound: float
) -> None:
    asked = Settings(stable_steps, stop_entropy, bound)
    config = SamplingConfig(
        sampler="entropy_bound",
        entropy_bound=bound,
        temperature_start=0.8,
        temperature_end=0.4,
        deterministic=False,
        draws="multinomial",
        stable_steps=stable_steps,
        stop_entropy=stop_entropy,
    )
    for seed in range(3):
        script = drifting(seed, scale)
        text, passes = reference(seed, script, asked, 3)
        model = ScriptedCanvasModel(script, FACTS)
        _, result = denoised(model, CanvasJob(Known((1, 2))), config, seed=seed, limits=Limits(3 * PLACES))
        assert (list(result.parts[0]), result.steps) == (text, passes)


def test_an_accepted_token_is_not_permanent() -> None:
    """The model changes its mind about the first place once the second one is accepted."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([97 if int(canvas.ids[1]) != 98 else 99, 98], [12.0, 14.0])

    _, result = denoised(ScriptedCanvasModel(script, uniform_facts()), CanvasJob(Known((), (1,)), (hole(2),)))
    assert bytes(result.parts[0]) == b"cb"


def test_what_is_not_accepted_is_drawn_anew_in_every_step() -> None:
    model = ScriptedCanvasModel(saying("a" * 8, 0.1), uniform_facts())
    config = SamplingConfig(sampler="entropy_bound", entropy_bound=0.0, steps=4)
    denoised(model, CanvasJob(Known((), (1,)), (hole(8),)), config)
    canvases = [call[0].canvas.ids for call in model.calls]
    assert all(int((left != right).sum()) >= 6 for left, right in pairwise(canvases))


def test_islands_do_not_hide_the_doubt_of_free_places_from_the_stop() -> None:
    """Twenty locked places with no entropy would pull the mean of all places under the bar."""
    model = ScriptedCanvasModel(saying("ab" + "-" * 20, 5.5), uniform_facts())
    job = CanvasJob(Known((), (1,)), (hole(1), island("-" * 20), hole(1)))
    doubt = denoised(model, job, SamplingConfig(steps=1))[0][0].entropy
    assert doubt is not None
    free = float(doubt[[0, 21]].mean())
    for bar, steps in ((free * 0.5, 6), (free * 1.1, 1)):
        config = SamplingConfig(steps=6, stop_entropy=bar)
        assert denoised(ScriptedCanvasModel(model.script, uniform_facts()), job, config)[1].steps == steps


def test_a_linear_schedule_accepts_so_many_of_the_open_places() -> None:
    model = ScriptedCanvasModel(saying("abcdefgh", 20.0), uniform_facts())
    config = SamplingConfig(schedule="linear", steps=4)
    steps, _ = denoised(model, CanvasJob(Known((), (1,)), (hole(8),)), config)
    assert [int(step.accepted.sum()) for step in steps] == [2, 4, 6, 8]


def test_padding_behind_the_last_hole_is_no_part_of_the_text() -> None:
    model = ScriptedCanvasModel(saying("ab"), uniform_facts(canvas_length=8))
    _, result = denoised(model, CanvasJob(Known((), (1,)), (hole(2),)), SamplingConfig(steps=2))
    assert bytes(result.parts[0]) == b"ab"
    assert model.calls[0][0].canvas.length == 8
