"""DiffusionGemma behind the seam of canvas models, compared with transformers' own forward pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from engine.canvas import FREE, LOCKED, SETTLED, Canvas
from engine.models.canvas_model import Known, Prediction, StepInput
from engine.models.diffusion_gemma.loading import LoadedGemma, load_diffusion_gemma
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.protocol.errors import EngineError
from tests.fakes.tiny_gemma import CANVAS, END_IDS, HIDDEN, WINDOW

if TYPE_CHECKING:
    from transformers import DiffusionGemmaForBlockDiffusion

TEXT = 400  # ids below are in the tokenizer


def dice(seed: int, *shape: int) -> torch.Tensor:
    """Random ids."""
    return torch.randint(0, TEXT, shape, generator=torch.Generator().manual_seed(seed))


def free_canvas(ids: torch.Tensor) -> Canvas:
    return Canvas.of([(ids.tolist(), FREE)])


def predict(model: DiffusionGemmaModel, prefix: list[int], canvas: Canvas, **given: Any) -> Prediction:
    """One step on a context of its own."""
    context = model.open(Known(tuple(prefix)))
    (found,) = model.step(context, [StepInput(canvas, **given)])
    model.close(context)
    return found


def in_chunks(gemma: LoadedGemma, chunk: int) -> DiffusionGemmaModel:
    """The same model with nothing resident, whose known text is encoded in chunks of so many rows."""
    loaded = gemma.model
    return DiffusionGemmaModel(loaded.network, loaded.tokenizer, loaded.facts, filler=END_IDS[0], chunk=chunk)


def usable(model: DiffusionGemmaModel, logits: torch.Tensor) -> torch.Tensor:
    """The columns that are not forbidden."""
    return logits[..., ~model.facts.forbidden]


@pytest.mark.parametrize("length", [1, WINDOW - 1, WINDOW, 3 * WINDOW + 1])
def test_the_decoder_on_our_cache_equals_the_models_own_forward(
    gemma: LoadedGemma, reference: DiffusionGemmaForBlockDiffusion, length: int
) -> None:
    prefix, canvas = dice(1, 1, length), dice(2, CANVAS)
    with torch.no_grad():
        wanted = reference(input_ids=prefix, decoder_input_ids=canvas[None]).logits[0]
    found = predict(gemma.model, prefix[0].tolist(), free_canvas(canvas))
    assert torch.allclose(usable(gemma.model, found.logits), usable(gemma.model, wanted), rtol=0, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.4, 0.8, 1.0])
def test_conditioning_as_embeddings_equals_conditioning_by_logits(
    gemma: LoadedGemma, reference: DiffusionGemmaForBlockDiffusion, temperature: float
) -> None:
    prefix, canvas, later = dice(1, 1, 20), dice(2, CANVAS), dice(3, CANVAS)
    first = predict(gemma.model, prefix[0].tolist(), free_canvas(canvas), temperature=temperature)
    assert first.conditioning is not None
    assert first.conditioning.shape == (CANVAS, HIDDEN)
    with torch.no_grad():
        wanted = reference(
            input_ids=prefix, decoder_input_ids=later[None], self_conditioning_logits=first.logits[None] / temperature
        ).logits[0]
    found = predict(gemma.model, prefix[0].tolist(), free_canvas(later), conditioning=first.conditioning)
    assert torch.allclose(usable(gemma.model, found.logits), usable(gemma.model, wanted), rtol=0, atol=1e-5)
    without = predict(gemma.model, prefix[0].tolist(), free_canvas(later))
    assert not torch.allclose(usable(gemma.model, without.logits), usable(gemma.model, wanted), atol=0.1)


def test_in_bf16_both_ways_of_conditioning_agree_as_well(gemma_folder: Path) -> None:
    from transformers import DiffusionGemmaForBlockDiffusion

    theirs: Any = DiffusionGemmaForBlockDiffusion.from_pretrained(
        gemma_folder, local_files_only=True, dtype=torch.bfloat16
    )
    theirs.eval()
    model = load_diffusion_gemma(gemma_folder, precision="bf16").model
    prefix, canvas, later = dice(1, 1, 20), dice(2, CANVAS), dice(3, CANVAS)
    first = predict(model, prefix[0].tolist(), free_canvas(canvas), temperature=0.7)
    assert first.conditioning is not None
    assert first.conditioning.dtype == torch.bfloat16
    with torch.no_grad():
        soft = (first.logits / 0.7).to(torch.bfloat16)[None]
        given = {"decoder_input_ids": later[None], "self_conditioning_logits": soft}
        wanted = theirs(input_ids=prefix, **given).logits[0]
    found = predict(model, prefix[0].tolist(), free_canvas(later), conditioning=first.conditioning)
    assert torch.allclose(usable(model, found.logits), usable(model, wanted), atol=1e-2)


def test_at_temperature_0_the_conditioning_is_the_likeliest_ids_embedding(gemma: LoadedGemma) -> None:
    cold = predict(gemma.model, [2, 120], free_canvas(dice(4, CANVAS)), temperature=0.0)
    assert cold.conditioning is not None
    assert torch.equal(cold.conditioning, gemma.model.network.embeddings(cold.logits.argmax(dim=-1)))


def test_many_rows_of_conditioning_equal_the_whole_at_once(
    gemma: LoadedGemma, reference: DiffusionGemmaForBlockDiffusion
) -> None:
    embedding = reference.model.decoder.embed_tokens
    logits = torch.randn(150, embedding.weight.shape[0], generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        whole = (logits / 0.5).softmax(dim=-1) @ embedding.weight * embedding.embed_scale
    assert torch.allclose(gemma.model.network.soft_embeddings(logits, 0.5), whole, atol=1e-5)


@pytest.mark.parametrize("kept", [1, 5, WINDOW, 30])
def test_a_kept_prefix_gives_exactly_the_logits_of_a_fresh_one(gemma: LoadedGemma, kept: int) -> None:
    first, canvas = dice(6, 30).tolist(), free_canvas(dice(7, CANVAS))
    model = in_chunks(gemma, 4)
    predict(model, first, canvas)
    second = first[:kept] + dice(8, 12).tolist()
    context = model.open(Known(tuple(second)))
    assert context.cached == kept // 4 * 4
    (found,) = model.step(context, [StepInput(canvas)])
    assert torch.equal(found.logits, predict(in_chunks(gemma, 4), second, canvas).logits)


@pytest.mark.parametrize("made", [3, CANVAS])
def test_what_another_job_left_behind_does_not_move_a_single_bit(gemma: LoadedGemma, made: int) -> None:
    text, canvas = dice(20, 41).tolist(), free_canvas(dice(21, CANVAS))
    model = in_chunks(gemma, 4)
    context = model.open(Known(tuple(text[:18])))
    model.commit(context, text[18 : 18 + made])
    # While that job is under way its rows are copied, afterwards its context is cut.
    for _ in range(2):
        assert torch.equal(predict(model, text, canvas).logits, predict(in_chunks(gemma, 4), text, canvas).logits)
        model.close(context)


def test_a_shorter_text_is_computed_as_if_it_had_come_first(gemma: LoadedGemma) -> None:
    text, canvas = dice(24, 30).tolist(), free_canvas(dice(25, CANVAS))
    model = in_chunks(gemma, 8)
    predict(model, text, canvas)
    context = model.open(Known(tuple(text[:20])))
    assert context.cached == 16
    (found,) = model.step(context, [StepInput(canvas)])
    assert torch.equal(found.logits, predict(in_chunks(gemma, 8), text[:20], canvas).logits)


def test_known_text_is_read_a_chunk_at_a_time_and_what_is_read_stays(gemma: LoadedGemma) -> None:
    model, text, canvas = in_chunks(gemma, 8), dice(22, 21).tolist(), free_canvas(dice(23, CANVAS))
    context = model.open(Known(tuple(text)))
    assert [len(context.encoded), model.read_on(context), len(context.encoded)] == [0, True, 8]
    model.close(context)  # cancelled
    again = model.open(Known(tuple(text)))
    assert again.cached == 8
    assert [model.read_on(again), model.read_on(again), model.read_on(again)] == [True, False, False]
    (found,) = model.step(again, [StepInput(canvas)])
    whole = predict(in_chunks(gemma, 32), text, canvas)
    assert torch.allclose(found.logits, whole.logits, atol=1e-4)


def test_a_prompt_that_was_just_used_needs_no_encoding(gemma: LoadedGemma) -> None:
    prefix = dice(9, 25).tolist()
    canvas = free_canvas(dice(10, CANVAS))
    before = predict(gemma.model, prefix, canvas)
    context = gemma.model.open(Known(tuple(prefix)))
    assert context.cached == 25
    assert torch.equal(gemma.model.step(context, [StepInput(canvas)])[0].logits, before.logits)


def test_committed_text_is_seen_like_a_longer_prefix_and_goes_with_its_job(
    gemma: LoadedGemma, gemma_folder: Path
) -> None:
    prefix, made, canvas = dice(11, 14).tolist(), dice(12, CANVAS).tolist(), free_canvas(dice(13, CANVAS))
    context = gemma.model.open(Known(tuple(prefix)))
    gemma.model.step(context, [StepInput(canvas)])
    gemma.model.commit(context, made)
    (found,) = gemma.model.step(context, [StepInput(canvas)])
    fresh = predict(load_diffusion_gemma(gemma_folder).model, prefix + made, canvas)
    assert torch.allclose(found.logits, fresh.logits, atol=1e-4)
    gemma.model.close(context)
    assert gemma.model.open(Known(tuple(prefix))).cached == 14
    assert gemma.model.open(Known((*prefix, *made))).cached == 0


def test_jobs_in_turn_do_not_touch_each_others_context(gemma: LoadedGemma) -> None:
    one, two, canvas = dice(14, 20).tolist(), dice(15, 33).tolist(), free_canvas(dice(16, CANVAS))
    alone = [predict(gemma.model, prefix, canvas).logits for prefix in (one, two)]
    contexts = [gemma.model.open(Known(tuple(prefix))) for prefix in (one, two)]
    for _ in range(2):
        for context, wanted in zip(contexts, alone, strict=True):
            assert torch.equal(gemma.model.step(context, [StepInput(canvas)])[0].logits, wanted)


def test_canvases_of_one_step_do_not_see_each_other(gemma: LoadedGemma) -> None:
    prefix = dice(17, 27).tolist()
    canvases = [free_canvas(dice(18 + index, length)) for index, length in enumerate((CANVAS, 5, CANVAS))]
    soft = predict(gemma.model, prefix, canvases[0], temperature=0.5).conditioning
    inputs = [StepInput(canvases[0], soft, 0.7), StepInput(canvases[1], None, 0.7), StepInput(canvases[2], soft, 0.7)]
    alone = [
        predict(gemma.model, prefix, given.canvas, conditioning=given.conditioning, temperature=0.7) for given in inputs
    ]
    context = gemma.model.open(Known(tuple(prefix)))
    together = gemma.model.step(context, inputs)
    assert [found.logits.shape[0] for found in together] == [CANVAS, 5, CANVAS]
    for found, wanted in zip(together, alone, strict=True):
        assert torch.allclose(found.logits, wanted.logits, atol=1e-4)
        assert found.conditioning is not None
        assert wanted.conditioning is not None
        assert torch.allclose(found.conditioning, wanted.conditioning, atol=1e-4)


def test_a_short_canvas_is_filled_with_the_end_of_a_text(gemma: LoadedGemma) -> None:
    ids = dice(21, 6).tolist()
    short = predict(gemma.model, [2, 130], Canvas.of([(ids, FREE)]))
    whole = predict(gemma.model, [2, 130], Canvas.of([(ids, FREE), ([END_IDS[0]] * (CANVAS - 6), LOCKED)]))
    assert torch.equal(short.logits, whole.logits[:6])


def test_a_locked_place_is_certain_without_nan_and_conditions_as_its_id(gemma: LoadedGemma) -> None:
    ids = dice(22, CANVAS).tolist()
    ids[4] = END_IDS[1]
    canvas = Canvas.of([(ids[:4], FREE), (ids[4:9], LOCKED), (ids[9:12], SETTLED), (ids[12:], FREE)])
    found = predict(gemma.model, dice(23, 9).tolist(), canvas, temperature=0.6)
    for cooled in (found.logits, found.logits / 0.4):
        judged: Any = torch.distributions.Categorical(logits=cooled)
        entropy = judged.entropy()
        assert not entropy.isnan().any()
        assert entropy[4:9].eq(0).all()
        assert entropy[[0, 3, 9, 11, 12, 15]].gt(0).all()
    probabilities = found.logits.softmax(dim=-1)
    assert torch.equal(torch.multinomial(probabilities, 1)[4:9, 0], canvas.ids[4:9])
    assert torch.equal(found.logits.argmax(dim=-1)[4:9], canvas.ids[4:9])
    assert found.conditioning is not None
    assert torch.equal(found.conditioning[4:9], gemma.model.network.embeddings(canvas.ids[4:9]))


def test_an_island_moves_what_is_predicted_in_front_of_it(gemma: LoadedGemma) -> None:
    ids = dice(24, CANVAS).tolist()
    one = predict(gemma.model, [2, 130], Canvas.of([(ids[:8], FREE), (ids[8:], LOCKED)]))
    other = predict(gemma.model, [2, 130], Canvas.of([(ids[:8], FREE), (dice(25, 8).tolist(), LOCKED)]))
    assert not torch.allclose(usable(gemma.model, one.logits[0]), usable(gemma.model, other.logits[0]), atol=1e-2)


def test_forbidden_ids_have_no_chance_at_open_places(gemma: LoadedGemma) -> None:
    found = predict(gemma.model, [2, 130], free_canvas(dice(26, CANVAS)))
    assert found.logits[:, gemma.model.facts.forbidden].eq(-torch.inf).all()
    assert found.logits[:, ~gemma.model.facts.forbidden].isfinite().all()


def test_a_step_copies_no_prefix_and_allocates_no_cache(gemma_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaDecoderTextAttention

    def copied(*_arguments: object) -> None:
        raise AssertionError("the prefix was copied together with the canvas")

    monkeypatch.setattr(DiffusionGemmaDecoderTextAttention, "append_to_cache", copied)
    model = load_diffusion_gemma(gemma_folder).model
    context = model.open(Known(tuple(dice(27, 40).tolist())))
    model.step(context, [StepInput(free_canvas(dice(28, CANVAS)))])
    kept = [store.data_ptr() for store in context.cache.stores]
    for seed in range(3):
        model.step(context, [StepInput(free_canvas(dice(seed, CANVAS)))] * 2)
    assert [store.data_ptr() for store in context.cache.stores] == kept
    assert context.cache.length == 40


def test_what_does_not_fit_the_window_is_refused_and_nothing_is_lost(gemma_folder: Path) -> None:
    model = load_diffusion_gemma(gemma_folder, window_tokens=64).model
    assert model.facts.window_tokens == 64
    with pytest.raises(EngineError, match="window") as refused:
        model.open(Known(tuple(dice(29, 64 - CANVAS + 1).tolist())))
    assert refused.value.kind == "window_exceeded"
    context = model.open(Known(tuple(dice(29, 40).tolist())))
    with pytest.raises(EngineError, match="window"):
        model.commit(context, dice(30, CANVAS).tolist())
    assert len(context.encoded) == 40
    assert model.step(context, [StepInput(free_canvas(dice(31, CANVAS)))])[0].logits.shape[0] == CANVAS


def test_an_encoding_that_fails_halfway_leaves_the_context_usable(
    gemma: LoadedGemma, gemma_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, canvas = dice(32, 20).tolist(), free_canvas(dice(33, CANVAS))
    context = gemma.model.open(Known(tuple(prefix)))
    before = gemma.model.step(context, [StepInput(canvas)])[0].logits
    last = gemma.model.network.encoder_layers[-1]

    def fail(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(last, "forward", fail)
        with pytest.raises(RuntimeError, match="no memory"):
            gemma.model.commit(context, [200, 201])
        with pytest.raises(RuntimeError, match="no memory"):
            gemma.model.read_on(gemma.model.open(Known((150, 151, 152))))
    assert torch.equal(gemma.model.step(context, [StepInput(canvas)])[0].logits, before)
    gemma.model.commit(context, [200, 201])
    fresh = load_diffusion_gemma(gemma_folder).model
    wanted = predict(fresh, [*prefix, 200, 201], canvas).logits
    assert torch.allclose(gemma.model.step(context, [StepInput(canvas)])[0].logits, wanted, atol=1e-4)


def test_a_canvas_without_a_prefix_can_be_denoised(gemma: LoadedGemma) -> None:
    assert predict(gemma.model, [], free_canvas(dice(34, CANVAS))).logits.shape[0] == CANVAS


def test_text_on_the_right_and_canvases_of_no_size_are_refused(gemma: LoadedGemma) -> None:
    with pytest.raises(ValueError, match="island"):
        gemma.model.open(Known((2,), (3,)))
    context = gemma.model.open(Known((2,)))
    for length in (0, CANVAS + 1):
        with pytest.raises(ValueError, match=f"1 to {CANVAS}"):
            gemma.model.step(context, [StepInput(free_canvas(dice(35, length)))])
    assert gemma.model.step(context, []) == []
