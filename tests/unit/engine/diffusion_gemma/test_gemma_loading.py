"""Loading DiffusionGemma: strict names, no code, memory counted first, and what is really kept in few bits."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.canvas import FREE, Canvas
from engine.diffusion.parallel import CanvasResult, denoise_canvas
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, Known, StepInput
from engine.models.diffusion_gemma.assembly import empty_network, wanted_tensors
from engine.models.diffusion_gemma.checkpoint import StoredTensor, read_index
from engine.models.diffusion_gemma.loading import LoadedGemma, load_diffusion_gemma
from engine.models.diffusion_gemma.memory import estimates, weight_bytes
from engine.models.diffusion_gemma.network import GemmaNetwork
from engine.models.diffusion_gemma.resident import ResidentShape
from engine.models.memory import fitting_precision
from engine.protocol.errors import EngineError
from tests.fakes.tiny_gemma import BEYOND, CANVAS, END_IDS, config_fields

WEIGHTS = "model.safetensors"
PROMPT = Known((2, 130, 140, 150, 160))


@pytest.fixture
def folder(gemma_folder: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint, to be changed."""
    return Path(shutil.copytree(gemma_folder, tmp_path / "changed"))


def logits(loaded: LoadedGemma) -> torch.Tensor:
    context = loaded.model.open(PROMPT)
    canvas = Canvas.of([(range(200, 200 + CANVAS), FREE)])
    found = loaded.model.step(context, [StepInput(canvas)])[0].logits
    return found[:, ~loaded.model.facts.forbidden]


def change_config(folder: Path, name: str = "config.json", **fields: Any) -> None:
    file = folder / name
    held = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    text = held.get("text_config", {}) | fields.pop("text_config", {})
    file.write_text(json.dumps(held | fields | ({"text_config": text} if text else {})), encoding="utf-8")


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


def refused(folder: Path, **options: Any) -> EngineError:
    with pytest.raises(EngineError) as failure:
        load_diffusion_gemma(folder, **options)
    assert failure.value.remedy
    return failure.value


def test_the_facts_are_those_of_the_checkpoint(gemma: LoadedGemma) -> None:
    facts = gemma.model.facts
    assert (facts.family, facts.noise, facts.mask_id, facts.canvas_length) == ("diffusion_gemma", "uniform", -1, CANVAS)
    assert (facts.precision, facts.device, facts.window_tokens, facts.trained_steps) == ("fp32", "cpu", 1024, 48)
    assert not facts.right_context
    assert facts.exact_cache
    assert facts.end_ids == frozenset(END_IDS)
    assert facts.forbidden.shape == (facts.vocab_size,)
    assert not facts.forbidden[list(END_IDS)].any()
    assert facts.forbidden[[0, 2, 3, 4, 7, 105]].all()
    assert facts.forbidden[-BEYOND:].all()
    assert not facts.forbidden[107:-BEYOND].any()


def test_the_sampling_is_the_published_one_unless_the_checkpoint_says_otherwise(folder: Path) -> None:
    sampling = load_diffusion_gemma(folder).sampling
    assert (sampling.sampler, sampling.steps, sampling.entropy_bound) == ("entropy_bound", 48, 0.1)
    assert (sampling.temperature_start, sampling.temperature_end, sampling.deterministic) == (0.8, 0.4, False)
    assert (sampling.stable_steps, sampling.stop_entropy) == (1, 0.005)
    recommended = {"max_denoising_steps": 20, "t_max": 0.9, "sampler_config": {"entropy_bound": 0.2}}
    change_config(folder, "generation_config.json", **recommended)
    sampling = load_diffusion_gemma(folder).sampling
    assert (sampling.steps, sampling.temperature_start, sampling.entropy_bound) == (20, 0.9, 0.2)


def test_end_ids_come_from_the_first_file_that_names_some(folder: Path) -> None:
    change_config(folder, "generation_config.json", eos_token_id=None)
    change_config(folder, eos_token_id=106)
    assert load_diffusion_gemma(folder).model.facts.end_ids == {106}
    (folder / "generation_config.json").unlink()
    change_config(folder, eos_token_id=None, text_config={"eos_token_id": [1, 50]})
    assert load_diffusion_gemma(folder).model.facts.end_ids == {1, 50}


def test_the_shared_stack_may_lie_under_the_encoder(folder: Path, gemma: LoadedGemma) -> None:
    def rename(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if name.startswith("model.decoder.") and "self_cond" not in name]:
            if not name.endswith("layer_scalar"):
                tensors[name.replace("model.decoder.", "model.encoder.language_model.")] = tensors.pop(name)
        tensors["lm_head.weight"] = tensors["model.encoder.language_model.embed_tokens.weight"].clone()

    change_tensors(folder, rename)
    assert torch.equal(logits(load_diffusion_gemma(folder)), logits(gemma))


def test_of_copies_the_decoders_counts(folder: Path, gemma: LoadedGemma) -> None:
    copies = {
        "lm_head.weight": "model.decoder.embed_tokens.weight",
        "model.encoder.language_model.norm.weight": "model.decoder.norm.weight",
    }
    change_tensors(folder, lambda tensors: tensors.update({copy: tensors[name] + 1 for copy, name in copies.items()}))
    assert torch.equal(logits(load_diffusion_gemma(folder)), logits(gemma))


def test_a_tensor_in_two_files_is_refused(folder: Path) -> None:
    save_file({"model.decoder.norm.weight": torch.ones(32)}, folder / "model-2.safetensors")
    with pytest.raises(EngineError, match="twice"):
        load_diffusion_gemma(folder)


def test_weights_may_lie_in_several_files(folder: Path, gemma: LoadedGemma) -> None:
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    for part in range(3):
        save_file({name: tensors[name] for name in names[part::3]}, folder / f"model-{part}.safetensors")
    (folder / WEIGHTS).unlink()
    assert torch.equal(logits(load_diffusion_gemma(folder)), logits(gemma))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop("model.decoder.layers.1.mlp.up_proj.weight"), "missing, model.decoder.layers.1"),
        (lambda tensors: tensors.pop("model.encoder.language_model.layers.0.layer_scalar"), "layer_scalar"),
        (lambda tensors: tensors.update({"model.decoder.layers.0.new": torch.ones(1)}), "belong to no part"),
        (lambda tensors: tensors.update({"model.decoder.norm.weight": torch.ones(31)}), r"\[31\]"),
    ],
)
def test_tensors_missing_left_over_or_of_another_shape_are_refused(
    folder: Path, change: Callable[[dict[str, torch.Tensor]], None], said: str
) -> None:
    change_tensors(folder, change)
    with pytest.raises(EngineError, match=said) as failure:
        load_diffusion_gemma(folder)
    assert failure.value.kind == "model_corrupt"


def test_weights_that_are_no_floats_are_refused(folder: Path) -> None:
    change_tensors(folder, lambda tensors: tensors.update({"model.decoder.norm.weight": torch.ones(32).char()}))
    assert refused(folder).kind == "model_unsupported"


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "gemma4"},
        {"quantization_config": {"quant_method": "awq"}},
        {"tie_word_embeddings": False},
        {"text_config": {"use_bidirectional_attention": "all"}},
    ],
)
def test_checkpoints_of_another_kind_are_refused(folder: Path, fields: dict[str, Any]) -> None:
    change_config(folder, **fields)
    assert refused(folder).kind == "model_unsupported"


@pytest.mark.parametrize(
    "fields",
    [
        {"canvas_length": 0},
        {"canvas_length": "256"},
        {"text_config": {"vocab_size": None}},
        {"text_config": {"num_hidden_layers": 7}},
        {"text_config": {"num_attention_heads": "four"}},
        {"vision_config": {"model_type": "no such tower"}},
    ],
)
def test_a_config_that_fits_no_model_is_refused(folder: Path, fields: dict[str, Any]) -> None:
    change_config(folder, **fields)
    assert refused(folder).kind == "model_corrupt"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("config.json", None, "model_missing"),
        ("config.json", "{", "model_corrupt"),
        ("tokenizer.json", None, "model_missing"),
        (WEIGHTS, None, "model_missing"),
        (WEIGHTS, "no weights", "model_corrupt"),
        ("generation_config.json", "[]", "model_corrupt"),
        ("generation_config.json", '{"t_max": "hot"}', "model_corrupt"),
        ("generation_config.json", '{"eos_token_id": [-4]}', "model_corrupt"),
    ],
)
def test_files_missing_or_damaged_are_refused(folder: Path, name: str, content: str | None, kind: str) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")
    assert refused(folder).kind == kind


def test_no_code_of_the_repository_is_run(folder: Path, gemma: LoadedGemma) -> None:
    trap = "raise RuntimeError('this ran')\n"
    (folder / "modeling_trap.py").write_text(trap, encoding="utf-8")
    change_config(folder, auto_map={"AutoModel": "modeling_trap.Trap", "AutoConfig": "modeling_trap.Config"})
    (folder / "chat_template.jinja").write_text("{{ raise_exception('this ran') }}", encoding="utf-8")
    assert torch.equal(logits(load_diffusion_gemma(folder)), logits(gemma))


def test_an_unknown_precision_is_refused(folder: Path) -> None:
    assert refused(folder, precision="int3").kind == "model_unsupported"


def test_a_transformers_that_keeps_its_cache_another_way_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaDecoderTextAttention

    monkeypatch.delattr(DiffusionGemmaDecoderTextAttention, "append_to_cache")
    monkeypatch.setattr(StoredTensor, "read", lambda tensor: pytest.fail(f"{tensor.name} was read"))
    failure = refused(folder)
    assert failure.kind == "model_unsupported"
    assert "transformers" in failure.remedy


@pytest.mark.parametrize("device", ["cuda:77", "cuda:x", "tpu"])
def test_a_device_that_is_not_here_is_refused(folder: Path, device: str) -> None:
    assert refused(folder, device=device).kind == "model_unsupported"


def test_what_cannot_fit_is_refused_before_any_weight_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(StoredTensor, "read", lambda tensor: read.append(tensor.name))
    index = read_index(folder)
    room = weight_bytes(index, "fp32")
    failure = refused(folder, name="tiny", precision="fp32", free_bytes=room)
    assert failure.kind == "out_of_memory"
    assert "tiny needs about" in failure.message
    assert "in fp32" in failure.message
    assert "even in int4" in refused(folder, precision="bf16", free_bytes=1000).remedy
    assert read == []


def test_the_remedy_names_the_precisions_that_would_fit(folder: Path) -> None:
    index = read_index(folder)
    sizes = estimates(index, cache_values=250, canvas_length=1, vocab_size=1)
    needed = sizes["fp32"].total
    assert fitting_precision("tiny", ["fp32"], sizes, needed, "cpu") == "fp32"
    with pytest.raises(EngineError) as failure:
        fitting_precision("tiny", ["fp32"], sizes, needed - 1, "cpu")
    assert re.fullmatch(
        r"load it in less: bf16 \(.* MB\) or int8 \(.* MB\) or int4 \(.* MB\) would fit", failure.value.remedy
    )


@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", 0.4), ("int8", 0.5), ("int4", 0.9)])
def test_coarser_precisions_stay_near_the_float_logits(
    folder: Path, gemma: LoadedGemma, precision: str, tolerance: float
) -> None:
    exact = logits(gemma)
    found = logits(load_diffusion_gemma(folder, precision=precision))
    assert 0 < float((found - exact).norm() / exact.norm()) < tolerance


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_the_report_tells_what_each_module_is_really_kept_in(
    folder: Path, precision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="engine.models.diffusion_gemma")
    loaded = load_diffusion_gemma(folder, precision=precision)
    assert f"{precision}: " in caplog.messages[0]
    assert len(caplog.messages) == 1 + len(loaded.forms)
    forms = {form.name.removeprefix("model.decoder."): form.form for form in loaded.forms}
    assert {forms[f"layers.{layer}.experts.{part}"] for layer in range(3) for part in ("gate_up", "down")} == {
        precision
    }
    assert forms["layers.0.self_attn.q_proj.weight"] == forms["layers.2.mlp.down_proj.weight"] == precision
    assert forms["embed_tokens"] == forms["layers.0.router.proj"] == forms["self_conditioning.up_proj"] == "bf16"
    assert 0 < loaded.packed_share < 1
    assert sum(form.bytes for form in loaded.forms) == pytest.approx(
        weight_bytes(read_index(folder), precision),
        abs=100,  # the scalars of layers, which are no parameters
    )


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
def test_every_precision_fills_a_canvas(folder: Path, precision: str) -> None:
    loaded = load_diffusion_gemma(folder, precision=precision)
    texts = []
    for _ in range(2):
        dice = torch.Generator().manual_seed(3)
        run = denoise_canvas(
            loaded.model,
            CanvasJob(PROMPT),
            replace(loaded.sampling, steps=4),
            dice,
            limits=Limits(CANVAS),
            expired=lambda: False,
        )
        texts.append(drain(run))
    assert texts[0] == texts[1]
    assert not any(bool(loaded.model.facts.forbidden[token]) for token in texts[0].parts[0])


def drain(run: Generator[object, None, CanvasResult]) -> CanvasResult:
    """What the loop returns in the end."""
    while True:
        try:
            next(run)
        except StopIteration as done:
            found: CanvasResult = done.value
            return found


def test_a_float_model_reports_no_packed_module(gemma: LoadedGemma) -> None:
    assert {form.form for form in gemma.forms} == {"fp32"}
    assert gemma.packed_share == 0


def published_shape() -> dict[str, Any]:
    """config.json of google/diffusiongemma-26B-A4B-it, as far as it says how large things are."""
    fields = config_fields(262_144)
    fields["canvas_length"] = 256
    fields["text_config"] |= {
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "moe_intermediate_size": 704,
        "num_hidden_layers": 30,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "num_experts": 128,
        "top_k_experts": 8,
    }
    return fields


def test_the_published_model_needs_about_18_gb_at_4_bits() -> None:
    network = empty_network(published_shape())
    wanted = wanted_tensors(network)
    assert len(wanted) == 691  # of 1,047 published tensors, 356 belong to the image tower
    index = {name: StoredTensor(Path("x"), name, shape, torch.bfloat16) for name, shape in wanted.items()}
    assert sum(tensor.values for tensor in index.values()) == pytest.approx(25.2e9, rel=0.01)
    caches = ResidentShape(GemmaNetwork(network).layer_shapes, torch.bfloat16, torch.device("cpu")).bytes_of(4096)
    needed = estimates(index, cache_values=caches, canvas_length=256, vocab_size=262_144)
    sizes = {precision: size.total / 1e9 for precision, size in needed.items()}
    assert sizes["int4"] == pytest.approx(18, abs=1)
    assert sizes["int8"] == pytest.approx(30, abs=1)
    assert sizes["bf16"] == pytest.approx(54, abs=1)
