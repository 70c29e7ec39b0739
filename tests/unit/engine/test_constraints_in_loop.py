"""Constraints inside the loop of parallel denoising: whatever the model says, it obeys or fails by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.canvas import Canvas
from engine.diffusion.constraints import (
    AllowedCharacters,
    Combined,
    Constraint,
    ExactText,
    Extent,
    Vocabulary,
    json_schema,
    must_parse,
)
from engine.diffusion.parallel import CanvasResult, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasFacts, CanvasJob, CanvasModel, Known, Part
from engine.protocol.errors import EngineError
from engine.tokenizer import ByteTokenizer
from tests.fakes.scripted_canvas import ScriptedCanvasModel, random_script, saying, scripted_facts, uniform_facts

WORDS = Vocabulary.of(ByteTokenizer(), scripted_facts())
FAMILIES = {"mask": scripted_facts(), "uniform": uniform_facts(), "blocks": scripted_facts(block=4)}
CONFIGS = (
    SamplingConfig(sampler="confidence", confidence_threshold=0.2),
    SamplingConfig(sampler="entropy_bound", entropy_bound=3.0, deterministic=False, temperature_start=1.0),
    SamplingConfig(sampler="remask", remask="edit", remask_strength=0.1),
    SamplingConfig(steps=3, schedule="linear", deterministic=False, temperature_start=0.8, temperature_end=0.4),
)
kinds, configs, seeds = st.sampled_from(sorted(FAMILIES)), st.sampled_from(CONFIGS), st.integers(0, 10_000)


def facts_for(kind: str, config: SamplingConfig) -> CanvasFacts:
    """Families without masks have nothing to remask."""
    return FAMILIES["mask" if config.remask != "none" and kind == "uniform" else kind]


def text_of(model: ScriptedCanvasModel, config: SamplingConfig, rule: Constraint, places: int = 8) -> str | None:
    """The hole's text, None when the job failed by name."""
    job = CanvasJob(Known((40,), (41,)), (Part(True, length=places),))
    generator = torch.Generator().manual_seed(7)
    run = denoise_canvas(
        cast(CanvasModel, model), job, config, generator, limits=Limits(64), expired=lambda: False, constraint=rule
    )
    fault = None
    try:
        while True:
            next(run)
    except StopIteration as finished:
        result: CanvasResult = finished.value
        return bytes(result.parts[0]).decode(errors="replace")
    except EngineError as failure:
        fault = failure
    assert fault.kind == "unsatisfied"
    return None


@settings(max_examples=60)
@given(kinds, configs, seeds)
def test_characters_and_extent_hold_in_every_family(kind: str, config: SamplingConfig, seed: int) -> None:
    model = ScriptedCanvasModel(random_script(seed, 6.0), facts=facts_for(kind, config))
    allowed = AllowedCharacters(WORDS, WORDS.writing_only("ab\n"))
    text = text_of(model, config, Combined([allowed, Extent(WORDS, 3, 8), ExactText({0: 97, -1: 98})]))
    assert text is not None
    assert set(text) <= set("ab\n")
    assert text.count("\n") <= 2
    assert (text[0], text[-1]) == ("a", "b")


@settings(max_examples=40)
@given(kinds, configs, seeds)
def test_what_is_let_through_passes_the_check(kind: str, config: SamplingConfig, seed: int) -> None:
    def balanced(text: str) -> Sequence[tuple[int, int]]:
        return [(at, at + 1) for at, one in enumerate(text) if one == "a" and text[at + 1 : at + 2] != "b"]

    model = ScriptedCanvasModel(random_script(seed, 6.0), facts=facts_for(kind, config))
    rules: list[Constraint] = [
        AllowedCharacters(WORDS, WORDS.writing_only("abc")),
        must_parse(WORDS, balanced, "(", ")", tries=5),
    ]
    text = text_of(model, config, Combined(rules), places=5)
    assert text is None or not balanced(f"({text})")


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_a_text_no_check_ever_passes_fails_by_name(kind: str) -> None:
    rule = Combined([must_parse(WORDS, lambda text: [(0, len(text))], tries=99)])
    model = ScriptedCanvasModel(random_script(3), facts=FAMILIES[kind])
    assert text_of(model, CONFIGS[0], rule) is None


def test_a_json_value_of_the_wrong_kind_is_mended() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = saying('1,"x"')(known, canvas)
        # A digit is the second choice everywhere.
        logits[:, ord("7")] = 4.0
        return logits

    model = ScriptedCanvasModel(script)
    rule = Combined([json_schema(WORDS, schema, "[", "]", tries=6)])
    text = text_of(model, CONFIGS[0], rule, places=5)
    assert text is not None
    assert all(isinstance(item, int) for item in json.loads(f"[{text}]"))
    assert text.startswith("1,")


class NeverContent:
    """Finds fault with whatever it is shown, and never gives up."""

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        return logits

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor:
        return ~canvas.locked

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:
        raise AssertionError("it is one canvas")


def test_a_text_that_never_passes_its_review_is_not_handed_out() -> None:
    assert text_of(ScriptedCanvasModel(saying("abcdefgh")), SamplingConfig(), NeverContent()) is None
