"""The loop of parallel denoising on scripted models: holes, islands, canvases, stops, cancel, deadline, errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch

from engine.canvas import Canvas
from engine.diffusion.parallel import denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasContext, CanvasJob, Known, Prediction, StepInput
from engine.protocol.errors import EngineError
from tests.fakes.clock import Clock
from tests.fakes.scripted_canvas import (
    END,
    MASK,
    UNDECODABLE,
    VOCAB,
    ScriptedCanvasModel,
    denoised,
    gap,
    hole,
    island,
    peaked,
    saying,
    scripted_facts,
    text_of,
    uniform_facts,
)

ONE_AT_A_TIME = SamplingConfig(confidence_threshold=1.0)


def test_a_hole_of_known_length_is_filled_and_the_surest_places_settle_first() -> None:
    model = ScriptedCanvasModel(saying("abcd", [2.0, 9.0, 3.0, 8.0]))
    steps, result = denoised(model, gap(4), ONE_AT_A_TIME)
    assert text_of(result.parts[0]) == "abcd"
    assert [step.accepted.nonzero().squeeze(-1).tolist() for step in steps] == [[1], [3], [2], [0]]
    assert (result.stop, result.steps, len(steps)) == ("end", 4, 4)
    assert 0 < result.confidence < 1


def test_sure_places_settle_together_and_steps_come_from_the_hole() -> None:
    model = ScriptedCanvasModel(saying("x" * 20, 20.0))
    steps, result = denoised(model, CanvasJob(Known(tuple(range(200)), (1,) * 500), (hole(20),)))
    assert (result.steps, steps[0].steps) == (1, 20)


def test_fewer_steps_than_places_still_finish_in_time() -> None:
    model = ScriptedCanvasModel(saying("0123456789", 0.5))
    steps, result = denoised(model, gap(10), SamplingConfig(steps=4))
    assert (result.steps, text_of(result.parts[0])) == (4, "0123456789")
    assert [int(step.accepted.sum()) for step in steps] == [3, 3, 2, 2]


@pytest.mark.parametrize(("schedule", "counts"), [("linear", [2, 2, 2, 2]), ("cosine", [1, 2, 2, 3])])
def test_a_schedule_says_how_many_settle_in_each_step(schedule: str, counts: list[int]) -> None:
    model = ScriptedCanvasModel(saying("01234567", 20.0))
    config = SamplingConfig.from_mapping({"schedule": schedule, "steps": 4})
    steps, _ = denoised(model, gap(8), config)
    assert [int(step.accepted.sum()) for step in steps] == counts


def test_several_holes_share_a_canvas_and_islands_stay() -> None:
    model = ScriptedCanvasModel(saying("ab--cde", [1.0, 2, 0, 0, 3, 4, 5]))
    job = CanvasJob(Known((1,), (2,)), (hole(2), island("__"), hole(3)))
    steps, result = denoised(model, job, ONE_AT_A_TIME)
    assert [text_of(part) for part in result.parts] == ["ab", "cde"]
    for step in steps:
        assert bytes(step.canvas.ids[2:4].tolist()) == b"__"
        assert step.canvas.locked.tolist() == [False, False, True, True, False, False, False]
    assert all(each.canvas.ids[2:4].tolist() == list(b"__") for call in model.calls for each in call)


def test_known_text_at_the_rim_of_the_job_is_given_to_the_family_as_such() -> None:
    model = ScriptedCanvasModel(saying("abc"))
    denoised(model, CanvasJob(Known((1,), (2,)), (island("x"), hole(3), island("yz"))))
    assert model.opened == [Known((1, *b"x"), (*b"yz", 2))]
    assert model.closed == 1


def test_a_family_that_sees_nothing_behind_the_canvas_gets_it_as_an_island() -> None:
    model = ScriptedCanvasModel(saying("abc" + "q" * 5), uniform_facts(canvas_length=8, right_context=False))
    _, result = denoised(model, CanvasJob(Known((1,), tuple(b"tail and more")), (hole(3),)), SamplingConfig(steps=3))
    assert text_of(result.parts[0]) == "abc"
    assert model.opened == [Known((1,))]
    assert all(each.canvas.length == 8 for call in model.calls for each in call)
    assert all(bytes(each.canvas.ids[3:].tolist()) == b"tail " for call in model.calls for each in call)


def test_open_text_ends_at_its_first_end_id_and_nothing_right_of_it_is_computed() -> None:
    model = ScriptedCanvasModel(saying("hi", [1.0, 2.0, 9.0]))
    _, result = denoised(model, CanvasJob(Known((1,)), (hole(),)), ONE_AT_A_TIME, limits=Limits(32))
    assert (text_of(result.parts[0]), result.stop) == ("hi", "end")
    assert [call[0].canvas.length for call in model.calls] == [32, 3, 3]


def test_an_end_id_cannot_stand_where_known_text_follows() -> None:
    model = ScriptedCanvasModel(lambda known, canvas: peaked([END] * canvas.length))
    _, result = denoised(model, gap(3))
    assert END not in result.parts[0]
    assert len(result.parts[0]) == 3


def test_text_longer_than_a_canvas_goes_on_in_the_next_one() -> None:
    text = "the quick brown fox"

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        done = len(known.prefix) - 2
        wanted = [*text.encode(), *[END] * 8][done : done + canvas.length]
        return peaked(wanted, 12.0)

    model = ScriptedCanvasModel(script, uniform_facts(canvas_length=8))
    config = SamplingConfig(steps=2, stable_steps=1, stop_entropy=0.1)
    steps, result = denoised(model, CanvasJob(Known((1, 2))), config)
    assert text_of(result.parts[0]) == text
    assert [bytes(ids).decode() for ids in model.committed] == ["the quic", "k brown "]
    assert text_of(steps[-1].drafts()[0]) == text
    assert len(model.opened) == model.closed == 1


def test_the_budget_is_kept_to_the_token() -> None:
    model = ScriptedCanvasModel(lambda known, canvas: peaked([97] * canvas.length), uniform_facts(canvas_length=8))
    _, result = denoised(model, CanvasJob(Known((1,))), SamplingConfig(steps=1), limits=Limits(11))
    assert (len(result.parts[0]), result.stop) == (11, "budget")


@pytest.mark.parametrize(("limits", "stop"), [(Limits(64, 1), "lines"), (Limits(64, 0, "\n"), "end")])
def test_lines_and_stop_text_end_open_text_before_another_canvas(limits: Limits, stop: str) -> None:
    model = ScriptedCanvasModel(saying("ab\ncd\nef"), uniform_facts(canvas_length=8))
    _, result = denoised(model, CanvasJob(Known((1,))), SamplingConfig(steps=1), limits=limits)
    assert (text_of(result.parts[0]), result.stop, result.steps) == ("ab", stop, 1)


def test_block_causal_text_is_made_block_by_block_and_committed_between() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        done = len(known.prefix) - 3
        return peaked([*b"abcdefg", *[END] * 8][done : done + canvas.length], 9.0)

    model = ScriptedCanvasModel(script, scripted_facts(block=4, right_context=False))
    _, result = denoised(model, CanvasJob(Known((1, 2, 3))), limits=Limits(32))
    # The prefix ends inside a block: the first canvas is the rest of it.
    assert [len(ids) for ids in model.committed] == [1, 4]
    assert text_of(result.parts[0]) == "abcdefg"


def test_blocks_inside_a_canvas_settle_from_the_left() -> None:
    model = ScriptedCanvasModel(saying("abcdefgh", [1.0, 1, 1, 1, 9, 9, 9, 9]), scripted_facts(block=4))
    steps, result = denoised(model, CanvasJob(Known((1,), (2,)), (hole(8),)), SamplingConfig(steps=2))
    # One token stands in front, so the blocks are places 0-2, 3-6 and 7; each has steps of its own.
    blocks = [{0, 1, 2}, {3, 4, 5, 6}, {7}]
    settled = [set(step.accepted.nonzero().squeeze(-1).tolist()) for step in steps]
    order = [next(n for n, block in enumerate(blocks) if places <= block) for places in settled]
    assert [set().union(*(s for s, n in zip(settled, order, strict=True) if n == b)) for b in range(3)] == blocks
    assert order == [0, 0, 1, 1, 2]
    assert text_of(result.parts[0]) == "abcdefgh"


def test_closing_the_run_stops_the_model_and_gives_the_context_back() -> None:
    model = ScriptedCanvasModel(saying("abcdef", 1.0))
    dice = torch.Generator().manual_seed(0)
    run = denoise_canvas(model, gap(6), ONE_AT_A_TIME, dice, limits=Limits(64), expired=lambda: False)
    next(run)
    next(run)
    run.close()
    assert (len(model.calls), model.closed) == (2, 1)


@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts()])
def test_at_the_deadline_the_best_draft_is_given(facts: object) -> None:
    model = ScriptedCanvasModel(saying("abcdef", 1.0))
    clock = Clock(1.0)
    _, result = denoised(model, gap(6), ONE_AT_A_TIME, expired=lambda: clock() >= 2)
    assert (text_of(result.parts[0]), result.stop, result.steps) == ("abcdef", "deadline", 2)


def test_at_the_deadline_blocks_without_a_guess_are_left_out() -> None:
    model = ScriptedCanvasModel(saying("abcdefgh", 1.0), scripted_facts(block=4))
    _, result = denoised(model, CanvasJob(Known((), (2,)), (hole(8),)), ONE_AT_A_TIME, expired=lambda: True)
    assert (text_of(result.parts[0]), result.stop) == ("abcd", "deadline")


def test_ids_that_stand_for_nothing_never_come_out() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = peaked([97] * canvas.length)
        logits[:, MASK], logits[:, UNDECODABLE] = 50.0, 60.0
        return logits

    for facts in (scripted_facts(), uniform_facts()):
        steps, result = denoised(ScriptedCanvasModel(script, facts), gap(4), SamplingConfig(steps=2))
        assert text_of(result.parts[0]) == "aaaa"
        assert all(set(step.drafts()[0]) == {97} for step in steps)


def test_a_place_without_usable_numbers_waits_and_is_filled_when_it_has_some() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = peaked(list(b"abc"))
        if bool(canvas.free[2]):
            logits[0] = math.nan
        return logits

    _, result = denoised(ScriptedCanvasModel(script), gap(3))
    assert (text_of(result.parts[0]), result.steps) == ("abc", 2)


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_model_that_says_nothing_is_an_error_and_never_text(value: float, uniform: bool, deterministic: bool) -> None:
    facts = uniform_facts() if uniform else scripted_facts()
    model = ScriptedCanvasModel(lambda known, canvas: torch.full((canvas.length, VOCAB), value), facts)
    config = SamplingConfig(deterministic=deterministic, temperature_start=1.0, temperature_end=1.0)
    with pytest.raises(EngineError) as failure:
        denoised(model, gap(3), config)
    assert failure.value.kind == "internal"
    assert model.closed == 1


@pytest.mark.parametrize(
    ("job", "changes", "kind"),
    [
        (CanvasJob(Known((1,)), ()), {}, "bad_request"),
        (CanvasJob(Known((1,)), (island("x"),)), {}, "bad_request"),
        (gap(300), {}, "bad_request"),
        (CanvasJob(Known((1,) * 4090), (hole(9),)), {}, "window_exceeded"),
        (gap(2), {"guidance_scale": 1.0}, "bad_request"),
        (gap(2), {"sampler": "remask"}, "bad_request"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(job: CanvasJob, changes: dict[str, object], kind: str) -> None:
    model = ScriptedCanvasModel(saying("ab"))
    with pytest.raises(EngineError) as failure:
        denoised(model, job, SamplingConfig.from_mapping(changes))
    assert (failure.value.kind, bool(failure.value.remedy)) == (kind, True)
    assert model.calls == []
    assert model.closed == len(model.opened)


def test_remasking_is_refused_where_every_place_is_judged_anew_anyway() -> None:
    with pytest.raises(EngineError, match="nothing to remask"):
        denoised(ScriptedCanvasModel(saying("ab"), uniform_facts()), gap(2), SamplingConfig(remask="cap"))


class Guided(ScriptedCanvasModel):
    """Without the text it leans to `b`, with it a little to `a`."""

    def step_unconditional(self, context: CanvasContext, inputs: Sequence[StepInput]) -> list[Prediction]:
        return [Prediction(peaked([98] * each.canvas.length, 4.0)) for each in inputs]


def test_guidance_moves_away_from_what_is_likely_without_the_text() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([98] * canvas.length, 4.0) + peaked([97] * canvas.length, 3.0)

    _, plain = denoised(Guided(script), gap(2))
    _, led = denoised(Guided(script), gap(2), SamplingConfig(guidance_scale=1.0))
    assert (text_of(plain.parts[0]), text_of(led.parts[0])) == ("bb", "aa")
    assert (plain.steps, led.steps) == (2, 4)


def test_self_conditioning_is_carried_from_step_to_step_and_can_be_off() -> None:
    for wanted in (True, False):
        model = ScriptedCanvasModel(saying("abcd", 1.0), uniform_facts())
        config = SamplingConfig(
            steps=3, temperature_start=0.8, temperature_end=0.4, deterministic=True, self_conditioning=wanted
        )
        denoised(model, gap(4), config)
        inputs = [call[0] for call in model.calls]
        carried = [None if each.conditioning is None else round(float(each.conditioning[0]), 4) for each in inputs]
        # The fake conditions on the temperature of its step: each step gets back that of the step before.
        expected = [round(each.temperature, 4) for each in inputs[:-1]]
        assert carried == [None, *(expected if wanted else [None, None])]


def test_stale_caches_are_refreshed_in_time_and_the_full_canvas_is_judged_exactly() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        # A stale cache is wrong about the last place; the exact pass of the full canvas knows better.
        right = list(b"abcd") if model.refreshed[-1] and len(model.calls) > 1 else list(b"abcx")
        return peaked(right, [4.0, 3.0, 2.0, 1.0] if not model.refreshed[-1] else 12.0)

    model = ScriptedCanvasModel(lambda known, canvas: torch.zeros(0), scripted_facts(exact_cache=False))
    model.script = script
    _, result = denoised(model, gap(4), SamplingConfig(refresh_every=9, steps=4, confidence_threshold=0.99))
    assert text_of(result.parts[0]) == "abcd"
    assert model.refreshed[0]
    assert model.refreshed[-1]
