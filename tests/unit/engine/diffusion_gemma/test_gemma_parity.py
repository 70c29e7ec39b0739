"""The loop over DiffusionGemma draws what transformers' `generate` draws: token for token, step for step.

`generate` has no generator of its own: the global one is put into the state that the loop's generator starts in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from engine.canvas import LOCKED
from engine.diffusion.parallel import CanvasResult, CanvasStep, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, Known, Part
from engine.models.diffusion_gemma.loading import LoadedGemma
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from tests.fakes.tiny_gemma import CANVAS, END_IDS

if TYPE_CHECKING:
    from transformers import DiffusionGemmaForBlockDiffusion

# `generate` imports parts of torch that warn of themselves.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")

PROMPT = (2, 105, 130, 140, 150, 160, 170, 180, 190, 200, 210, 220, 230, 240)
CONFIG = SamplingConfig(
    sampler="entropy_bound",
    steps=12,
    temperature_start=0.8,
    temperature_end=0.4,
    deterministic=False,
    draws="multinomial",
    entropy_bound=0.1,
    stable_steps=1,
    stop_entropy=0.005,
)


@dataclass
class Drafts:
    """A streamer of transformers' that keeps every draft."""

    seen: list[list[int]] = field(default_factory=list)

    def put(self, value: torch.Tensor) -> None:
        """Finished canvases are in the result anyway."""

    def put_draft(self, value: torch.Tensor) -> None:
        self.seen.append(value[0].tolist())

    def end(self) -> None:
        """Nothing to do."""


@contextmanager
def global_generator(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def generated(
    reference: DiffusionGemmaForBlockDiffusion, seed: int, config: SamplingConfig, tokens: int, **given: Any
) -> tuple[list[int], list[list[int]]]:
    """The new ids of `generate`, up to the first end id, and its drafts."""
    from transformers.models.diffusion_gemma.generation_diffusion_gemma import EntropyBoundSamplerConfig

    settings = {
        "max_denoising_steps": config.steps,
        "t_max": config.temperature_start,
        "t_min": config.temperature_end,
        "stability_threshold": config.stable_steps,
        "confidence_threshold": config.stop_entropy,
        "sampler_config": EntropyBoundSamplerConfig(entropy_bound=config.entropy_bound),
    }
    return as_generated(reference, seed, tokens, **settings, **given)


def as_generated(
    reference: DiffusionGemmaForBlockDiffusion, seed: int, tokens: int, **given: Any
) -> tuple[list[int], list[list[int]]]:
    """The same with the checkpoint's own settings, but for those given."""
    drafts = Drafts()
    with global_generator(seed):
        found: Any = reference.generate(
            torch.tensor([PROMPT]), streamer=drafts, max_new_tokens=tokens, eos_token_id=list(END_IDS), **given
        )
    return until_end(found.sequences[0, len(PROMPT) :].tolist()), drafts.seen


def until_end(ids: list[int]) -> list[int]:
    return next((ids[:place] for place, token in enumerate(ids) if token in END_IDS), ids)


def denoised(
    model: DiffusionGemmaModel, seed: int, config: SamplingConfig, tokens: int, *parts: Part
) -> tuple[CanvasResult, list[CanvasStep]]:
    """The loop's result and its steps."""
    job = CanvasJob(Known(PROMPT), parts or (Part(is_hole=True),))
    dice = torch.Generator().manual_seed(seed)
    run = denoise_canvas(model, job, config, dice, limits=Limits(tokens), expired=lambda: False)
    steps: list[CanvasStep] = []
    while True:
        try:
            step = next(run)
            steps += [step] if step is not None else []
        except StopIteration as done:
            return done.value, steps


@pytest.fixture
def unbound(gemma: LoadedGemma) -> DiffusionGemmaModel:
    """Nothing forbidden, as `generate` forbids nothing."""
    facts = replace(gemma.model.facts, forbidden=torch.zeros_like(gemma.model.facts.forbidden))
    return DiffusionGemmaModel(gemma.model.network, gemma.model.tokenizer, facts, filler=END_IDS[0])


def require_equal(wanted: tuple[list[int], list[list[int]]], result: CanvasResult, steps: list[CanvasStep]) -> None:
    """Compare results, the number of steps, and every draft up to its end id."""
    ids, drafts = wanted
    assert list(result.parts[0]) == ids
    assert result.steps == len(steps) == len(drafts)
    for step, draft in zip(steps, drafts, strict=True):
        shown = step.canvas.ids.tolist()
        assert until_end(shown) == until_end(draft)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_dice_give_the_same_text_and_the_same_drafts(
    unbound: DiffusionGemmaModel, reference: DiffusionGemmaForBlockDiffusion, seed: int
) -> None:
    require_equal(generated(reference, seed, CONFIG, CANVAS), *denoised(unbound, seed, CONFIG, CANVAS))


def test_the_sampling_a_checkpoint_is_loaded_with_is_what_generate_does_unasked(
    gemma: LoadedGemma, unbound: DiffusionGemmaModel, reference: DiffusionGemmaForBlockDiffusion
) -> None:
    require_equal(
        as_generated(reference, 20, CANVAS),
        *denoised(unbound, 20, replace(gemma.sampling, draws="multinomial"), CANVAS),
    )


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("stable_steps", [0, 1, 2])
@pytest.mark.parametrize("stop_entropy", [0.1, 0.3, 1.5, 10.0])
def test_it_stops_in_the_same_step(
    unbound: DiffusionGemmaModel,
    reference: DiffusionGemmaForBlockDiffusion,
    seed: int,
    stable_steps: int,
    stop_entropy: float,
) -> None:
    config = replace(CONFIG, stable_steps=stable_steps, stop_entropy=stop_entropy, steps=30, entropy_bound=4.0)
    require_equal(generated(reference, seed, config, CANVAS), *denoised(unbound, seed, config, CANVAS))


def test_the_stop_settings_above_really_stop_at_different_steps(unbound: DiffusionGemmaModel) -> None:
    config = replace(CONFIG, steps=30, entropy_bound=4.0)
    counts = {
        (stable, entropy): denoised(unbound, 7, replace(config, stable_steps=stable, stop_entropy=entropy), CANVAS)[
            0
        ].steps
        for stable in (0, 1, 2)
        for entropy in (0.1, 0.3, 1.5, 10.0)
    }
    assert counts[0, 10.0] == 1
    assert 1 < counts[1, 10.0] < counts[2, 10.0]
    assert len(set(counts.values())) >= 5
    assert min(counts.values()) < 30


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_with_any_number_of_steps(
    unbound: DiffusionGemmaModel, reference: DiffusionGemmaForBlockDiffusion, steps: int
) -> None:
    config = replace(CONFIG, steps=steps)
    require_equal(generated(reference, 9, config, CANVAS), *denoised(unbound, 9, config, CANVAS))


@pytest.mark.parametrize("seed", [10, 11, 12])
def test_over_several_canvases(
    unbound: DiffusionGemmaModel, reference: DiffusionGemmaForBlockDiffusion, seed: int
) -> None:
    config = replace(CONFIG, steps=5)
    ids, drafts = generated(reference, seed, config, 3 * CANVAS)
    require_equal((ids, drafts), *denoised(unbound, seed, config, 3 * CANVAS))


def test_some_seed_above_needs_more_than_one_canvas(reference: DiffusionGemmaForBlockDiffusion) -> None:
    lengths = [len(generated(reference, seed, replace(CONFIG, steps=5), 3 * CANVAS)[0]) for seed in (10, 11, 12)]
    assert max(lengths) > CANVAS


def test_with_ids_forbidden_it_equals_generate_with_a_processor(
    gemma: LoadedGemma, reference: DiffusionGemmaForBlockDiffusion
) -> None:
    from transformers import LogitsProcessorList

    def forbid(_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.masked_fill(gemma.model.facts.forbidden, -torch.inf)

    processors: Any = LogitsProcessorList([forbid])
    wanted = generated(reference, 13, CONFIG, CANVAS, logits_processor=processors)
    require_equal(wanted, *denoised(gemma.model, 13, CONFIG, CANVAS))


@pytest.mark.parametrize("seed", range(3))
def test_a_warm_start_equals_generate_from_the_same_canvas(
    unbound: DiffusionGemmaModel, reference: DiffusionGemmaForBlockDiffusion, seed: int
) -> None:
    warm = torch.randint(107, 400, (CANVAS,), generator=torch.Generator().manual_seed(99 + seed))
    wanted = generated(reference, seed, CONFIG, CANVAS, decoder_input_ids=warm[None])
    part = Part(is_hole=True, warm=tuple(warm.tolist()))
    require_equal(wanted, *denoised(unbound, seed, CONFIG, CANVAS, part))


@pytest.mark.parametrize("seed", range(3))
def test_islands_come_out_unchanged_and_have_no_entropy(gemma: LoadedGemma, seed: int) -> None:
    island = (300, 301, END_IDS[1], 303)
    parts = (Part(is_hole=True, length=5), Part(is_hole=False, ids=island), Part(is_hole=True, length=4))
    result, steps = denoised(gemma.model, seed, CONFIG, CANVAS - len(island), *parts)
    assert result.steps == len(steps) == CONFIG.steps
    for step in steps:
        assert step.canvas.ids[5:9].tolist() == list(island)
        assert step.canvas.state[5:9].eq(LOCKED).all()
        assert step.entropy is not None
        assert step.entropy[5:9].eq(0).all()
        assert not step.entropy.isnan().any()
    assert len(result.parts[0]) == 5
    ids = [token for part in result.parts for token in part]
    assert not any(bool(gemma.model.facts.forbidden[token]) for token in ids)


def test_the_same_seed_gives_the_same_text_whatever_the_global_dice_do(gemma: LoadedGemma) -> None:
    texts = []
    for seed in (1, 2):
        with global_generator(seed):
            texts.append(denoised(gemma.model, 5, CONFIG, CANVAS)[0].parts)
    assert texts[0] == texts[1]
    assert texts[0] != denoised(gemma.model, 6, CONFIG, CANVAS)[0].parts
