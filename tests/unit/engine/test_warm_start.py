"""Denoising that starts from present text: what is re-opened, what is edited, what stays; and constraints' reviews."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from engine.canvas import Canvas
from engine.diffusion.sampling import SamplingConfig
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known
from engine.protocol.errors import EngineError
from tests.fakes.scripted_canvas import (
    MASK,
    ScriptedCanvasModel,
    denoised,
    gap,
    hole,
    peaked,
    saying,
    scripted_facts,
    text_of,
    uniform_facts,
)


@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts()])
def test_only_the_places_to_be_re_opened_change(facts: CanvasFacts) -> None:
    model = ScriptedCanvasModel(saying("XXXXXX", 20.0), facts)
    _, result = denoised(model, gap(warm=tuple(b"abcdef"), reopen=frozenset({1, 4})), SamplingConfig(steps=3))
    assert text_of(result.parts[0]) == "aXcdXf"


def test_re_opened_places_are_masks_and_the_rest_is_seen() -> None:
    model = ScriptedCanvasModel(saying("abcdef", 20.0))
    denoised(model, gap(warm=tuple(b"abcdef"), reopen=frozenset({2})))
    assert model.calls[0][0].canvas.ids.tolist() == [*b"ab", MASK, *b"def"]


def test_a_uniform_canvas_begins_with_the_present_text_itself() -> None:
    model = ScriptedCanvasModel(saying("abcdef", 20.0), uniform_facts(canvas_length=8))
    denoised(model, CanvasJob(Known((1,)), (hole(warm=tuple(b"abcdef")),)), SamplingConfig(steps=1))
    assert model.calls[0][0].canvas.ids[:6].tolist() == list(b"abcdef")


def test_every_canvas_starts_warm() -> None:
    model = ScriptedCanvasModel(saying("abcdefgh", 20.0), uniform_facts(canvas_length=8))
    warm = tuple(b"0123456789")
    denoised(model, CanvasJob(Known((1,), (2,)), (hole(warm=warm),)), SamplingConfig(steps=1))
    assert [call[0].canvas.ids[:2].tolist() for call in model.calls] == [list(b"01"), list(b"89")]


def test_without_a_span_the_model_s_doubt_about_the_present_token_re_opens_it() -> None:
    model = ScriptedCanvasModel(saying("good", 20.0))
    steps, result = denoised(model, gap(warm=tuple(b"gXod")))
    assert text_of(result.parts[0]) == "good"
    assert model.calls[1][0].canvas.ids.tolist() == [ord("g"), MASK, *b"od"]
    assert (result.steps, len(steps)) == (2, 2)


def test_text_the_model_agrees_with_costs_one_pass() -> None:
    _, result = denoised(ScriptedCanvasModel(saying("good", 20.0)), gap(warm=tuple(b"good")))
    assert (text_of(result.parts[0]), result.steps) == ("good", 1)


def test_nothing_to_re_open_costs_no_pass() -> None:
    _, result = denoised(ScriptedCanvasModel(saying("good", 20.0)), gap(warm=tuple(b"keep"), reopen=frozenset()))
    assert (text_of(result.parts[0]), result.steps) == ("keep", 0)


def test_a_hole_longer_than_its_text_is_filled_behind_it() -> None:
    model = ScriptedCanvasModel(saying("abcdef", 20.0))
    _, result = denoised(model, gap(6, warm=tuple(b"abc"), reopen=frozenset()))
    assert text_of(result.parts[0]) == "abcdef"


def learning(text: str) -> ScriptedCanvasModel:
    """Says `x` at the first place until all others are settled, then knows better."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        others = bool(canvas.settled[1:].all())
        return peaked([ord(text[0] if others else "x"), *text[1:].encode()], [9.0 if others else 12.0, 3.0, 3.0, 3.0])

    return ScriptedCanvasModel(script)


def test_an_early_mistake_stays_without_self_correction() -> None:
    _, result = denoised(learning("fine"), gap(4), SamplingConfig(confidence_threshold=0.95))
    assert text_of(result.parts[0]) == "xine"


def test_an_early_mistake_is_edited_once_the_rest_is_known() -> None:
    config = SamplingConfig(confidence_threshold=0.95, sampler="remask", remask="edit", remask_strength=0.5)
    steps, result = denoised(learning("fine"), gap(4), config)
    assert text_of(result.parts[0]) == "fine"
    # It changes the settled token in a step of its own and stops when nothing changes any more.
    assert bool(steps[4].changed[0])
    assert result.steps == 6


def test_editing_that_goes_in_circles_ends() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([97 + (int(canvas.ids[0]) == 97)], 20.0)

    config = SamplingConfig(sampler="remask", remask="edit", remask_strength=0.5)
    _, result = denoised(ScriptedCanvasModel(script), gap(1), config)
    assert result.steps == 17


@pytest.mark.parametrize("strategy", ["cap", "rescale", "confidence"])
def test_remasking_re_opens_what_has_become_improbable(strategy: str) -> None:
    """The first token settled is wrong, and the model says so from then on."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        early = bool(canvas.free.all())
        return peaked([120 if early else 97] + [98] * 9, [20.0 if early else 9.0, *[2.0] * 9])

    texts = []
    for seed in range(10):
        config = SamplingConfig.from_mapping(
            {"sampler": "remask", "remask": strategy, "remask_strength": 1.0, "schedule": "linear", "steps": 10}
        )
        steps, result = denoised(ScriptedCanvasModel(script), gap(10), config, seed=seed)
        assert len(result.parts[0]) == 10
        assert len(steps) == 10
        texts.append(text_of(result.parts[0]))
    assert texts.count("a" + "b" * 9) >= 8


class Wants:
    """A constraint: `wanted` at a place; asks for it once more when the canvas is full."""

    def __init__(self, place: int, wanted: int, reviews: int = 3) -> None:
        self.place, self.wanted, self.reviews = place, wanted, reviews
        self.seen: list[list[int]] = []

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        if self.seen:
            logits[self.place, torch.arange(logits.shape[1]) != self.wanted] = -torch.inf
        return logits

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:
        self.seen.append(canvas.ids.tolist())
        if len(self.seen) > self.reviews or int(canvas.ids[self.place]) == self.wanted:
            return None
        return torch.arange(canvas.length) == self.place

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:
        raise AssertionError("it is one canvas")


@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts(), uniform_facts(canvas_length=8)])
def test_a_constraint_has_places_denoised_anew_and_only_those(facts: CanvasFacts) -> None:
    constraint = Wants(1, ord("Z"))
    model = ScriptedCanvasModel(saying("abcd", 20.0), facts)
    _, result = denoised(model, gap(4), SamplingConfig(steps=2), constraint=constraint)
    assert text_of(result.parts[0]) == "aZcd"
    assert [bytes(seen[:4]) for seen in constraint.seen] == [b"abcd", b"aZcd"]


def test_a_constraint_that_is_never_satisfied_ends_the_job() -> None:
    constraint = Wants(0, MASK, reviews=1000)
    model = ScriptedCanvasModel(saying("abcd", 20.0))
    constraint.constrain = lambda canvas, logits: logits  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="after 8 tries") as failure:
        denoised(model, gap(4), constraint=constraint)
    assert failure.value.kind == "unsatisfied"
    assert len(constraint.seen) == 9


@pytest.mark.parametrize("strategy", ["cap", "rescale", "confidence", "edit"])
def test_blocks_that_are_done_are_not_re_opened_for_ever(strategy: str) -> None:
    config = SamplingConfig.from_mapping({"sampler": "remask", "remask": strategy, "remask_strength": 1.0})
    model = ScriptedCanvasModel(saying("abcdefghij", 1.0), scripted_facts(block=4))
    _, result = denoised(model, gap(10), config)
    assert text_of(result.parts[0]) == "abcdefghij"
    assert result.steps <= 10 + 16
