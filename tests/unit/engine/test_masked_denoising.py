"""Masked families in the loop of parallel denoising: what is locked stays, and a trained model fills what it must."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.canvas import Canvas
from engine.diffusion.parallel import CanvasResult, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, CanvasModel, Known, Part
from engine.models.masked.families import LAYOUTS
from engine.models.masked.loading import Masked, load_masked
from engine.models.masked.model import MaskedModel
from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.known_answer import HALF, Riddle, riddles

STALE = 4


def run(model: CanvasModel, job: CanvasJob, config: SamplingConfig, seed: int = 0) -> tuple[CanvasResult, list[Canvas]]:
    """The result, and the canvas after every step."""
    generator = torch.Generator().manual_seed(seed)
    steps = denoise_canvas(model, job, config, generator, limits=Limits(64), expired=lambda: False)
    seen = []
    while True:
        try:
            step = next(steps)
            seen += [step.canvas] if step is not None else []
        except StopIteration as stop:
            result: CanvasResult = stop.value
            return result, seen


@pytest.fixture
def masked(request: pytest.FixtureRequest, tmp_path: Path) -> Masked:
    layout: str = request.param
    return load_masked(write_checkpoint(tmp_path / layout, layout))


def two_holes(masked: Masked) -> CanvasJob:
    encode = masked.model.tokenizer.encode
    suffix = encode("\n\nprint(f(2))\n") if masked.model.facts.right_context else []
    parts = (
        Part(is_hole=True, length=7),
        Part(is_hole=False, ids=tuple(encode("\n    return "))),
        Part(is_hole=True, length=5),
    )
    return CanvasJob(Known(tuple(encode("def f(a):\n")), tuple(suffix)), parts)


@pytest.mark.parametrize("masked", sorted(LAYOUTS), indirect=True)
@pytest.mark.parametrize("refresh_every", [1, STALE])
def test_islands_come_back_and_nothing_forbidden_comes_out(masked: Masked, refresh_every: int) -> None:
    job = two_holes(masked)
    config = replace(masked.layout.sampling, refresh_every=refresh_every)
    result, canvases = run(masked.model, job, config)
    facts = masked.model.facts
    island = job.parts[1].ids
    stretches = {island[start:end] for start in range(len(island)) for end in range(start, len(island) + 1)}
    for canvas in canvases:  # a block-causal family meets the island in pieces
        assert tuple(canvas.ids[canvas.locked].tolist()) in stretches
    assert len(result.parts) == 2
    out = [token for part in result.parts for token in part]
    assert not {facts.mask_id, facts.expand_id, *facts.end_ids} & set(out)
    assert not facts.forbidden[out].any()
    masked.model.tokenizer.decode_bytes(out).decode(errors="replace")


@pytest.mark.parametrize("masked", sorted(LAYOUTS), indirect=True)
def test_the_same_seed_gives_the_same_text(masked: Masked) -> None:
    job = two_holes(masked)
    first, again = (run(masked.model, job, masked.layout.sampling, seed=5)[0] for _ in range(2))
    assert first.parts == again.parts


@pytest.mark.parametrize("masked", ["dreamon"], indirect=True)
def test_a_hole_that_changes_its_length_does_so_on_stale_caches_too(masked: Masked) -> None:
    """Random weights grow and shrink a hole at random: the suffix must follow it through every step."""
    facts = masked.model.facts
    masked.model.network.lm_head.weight[[facts.expand_id, facts.delete_id]] *= 3
    encode = masked.model.tokenizer.encode
    job = CanvasJob(Known(tuple(encode("def f(a):\n")), tuple(encode("\nprint(f(2))\n"))), (Part(is_hole=True),))
    grown = {0}
    for seed in range(60):
        if min(grown) < 0 < max(grown):
            break
        result, canvases = run(masked.model, job, replace(masked.layout.sampling, refresh_every=STALE), seed=seed)
        grown |= {canvas.length - canvases[0].length for canvas in canvases}
        assert not {facts.mask_id, facts.expand_id, facts.delete_id} & set(result.parts[0])
    assert min(grown) < 0 < max(grown)


@pytest.fixture
def trained(shifted_answerer: MaskedModel) -> MaskedModel:
    return shifted_answerer


def filled(model: MaskedModel, riddle: Riddle, config: SamplingConfig, parts: tuple[Part, ...] | None = None) -> object:
    job = CanvasJob(Known(riddle.prefix, riddle.suffix), parts or (Part(is_hole=True, length=2 * HALF),))
    return run(model, job, config)[0].parts


@pytest.mark.parametrize(
    "config",
    [
        LAYOUTS["dream"].sampling,
        LAYOUTS["llada"].sampling,
        LAYOUTS["sdar"].sampling,
        replace(LAYOUTS["llada"].sampling, refresh_every=1),
    ],
    ids=["surest first", "likeliest first", "threshold", "exact"],
)
def test_the_loop_fills_the_gap_from_both_sides(trained: MaskedModel, config: SamplingConfig) -> None:
    asked = riddles(8, 4)
    assert [filled(trained, riddle, config) for riddle in asked] == [(riddle.answer,) for riddle in asked]


def test_without_the_suffix_the_loop_is_wrong(trained: MaskedModel) -> None:
    asked = riddles(8, 4)
    config = LAYOUTS["llada"].sampling
    blind = [filled(trained, replace(riddle, suffix=()), config) for riddle in asked]
    assert not any(found == (riddle.answer,) for found, riddle in zip(blind, asked, strict=True))


def test_two_holes_around_known_text_are_filled_as_one_canvas(trained: MaskedModel) -> None:
    for riddle in riddles(8, 5):
        middle = riddle.answer[2:4]
        parts = (Part(is_hole=True, length=2), Part(is_hole=False, ids=middle), Part(is_hole=True, length=2))
        assert filled(trained, riddle, LAYOUTS["llada"].sampling, parts) == (riddle.answer[:2], riddle.answer[4:])


def test_a_warm_start_with_a_wrong_token_is_mended(trained: MaskedModel) -> None:
    for riddle in riddles(4, 6):
        wrong = ((riddle.answer[1] + 1) % 12, (riddle.answer[4] + 5) % 12)
        warm = (riddle.answer[0], wrong[0], *riddle.answer[2:4], wrong[1], riddle.answer[5])
        part = Part(is_hole=True, warm=warm, reopen=frozenset({1, 4}), length=2 * HALF)
        assert filled(trained, riddle, LAYOUTS["llada"].sampling, (part,)) == (riddle.answer,)
