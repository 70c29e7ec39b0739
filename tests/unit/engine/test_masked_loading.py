"""Checkpoints of every published layout through the real path, and those that must be refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.diffusion.length import LengthCalibration
from engine.models.canvas_model import Known
from engine.models.masked.config import architecture_of
from engine.models.masked.families import LAYOUTS
from engine.models.masked.loading import CALIBRATION, load_masked
from engine.models.masked.weights import weight_files
from engine.protocol.errors import EngineError
from tests.fakes.checkpoints import (
    HEADS,
    SPARE_ROWS,
    TINY_LAYOUTS,
    special_tokens,
    tokenizer_json,
    write_all,
    write_checkpoint,
)
from tests.fakes.masked_reference import canvas_of, llada_forward

Change = Callable[[dict[str, Any]], object]


def edit_json(path: Path, change: Change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def edit_weights(folder: Path, change: Change) -> None:
    (file,) = weight_files(folder)
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def refused(folder: Path, kind: str, **options: Any) -> str:
    """What loading says when it refuses."""
    with pytest.raises(EngineError) as failure:
        load_masked(folder, **options)
    assert failure.value.kind == kind
    assert failure.value.remedy
    return failure.value.message


def test_every_layout_has_a_checkpoint_and_the_other_way_round() -> None:
    assert set(TINY_LAYOUTS) == set(LAYOUTS)


def test_the_command_writes_every_layout_and_each_is_recognised(tmp_path: Path) -> None:
    root = tmp_path / "models"
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.checkpoints", str(root)], capture_output=True, text=True, check=True
    )
    assert [Path(line).name for line in done.stdout.split()] == list(write_all(tmp_path / "again"))
    for name in LAYOUTS:
        masked = load_masked(root / name)
        assert masked.layout.name == name
        facts = masked.model.facts
        assert facts.family == "masked"
        assert facts.noise == "mask"
        assert facts.block == LAYOUTS[name].block
        assert (facts.exact_cache, facts.right_context) == ((True, False) if facts.block else (False, True))


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_special_ids_are_read_off_the_vocabulary(tmp_path: Path, layout: str) -> None:
    masked = load_masked(write_checkpoint(tmp_path / layout, layout))
    added = special_tokens(tmp_path / layout)
    facts, wanted = masked.model.facts, LAYOUTS[layout]
    texts = [text for text in wanted.mask.texts if text in added]
    assert facts.mask_id == (added[texts[0]] if texts else wanted.mask.published)
    assert facts.end_ids == {added[text] for token in wanted.ends for text in token.texts if text in added}
    assert facts.forbidden[facts.mask_id]
    assert not facts.forbidden[list(facts.end_ids)].any()
    allowed = {facts.expand_id, facts.delete_id, *facts.end_ids}
    assert all(facts.forbidden[index] for index in set(added.values()) - allowed)
    assert facts.forbidden[-SPARE_ROWS:].all()
    assert facts.vocab_size == facts.forbidden.shape[0]
    for index in (~facts.forbidden).nonzero().squeeze(-1).tolist():
        assert index in allowed or masked.model.tokenizer.decode_bytes([index])


def test_dreamon_can_change_the_length(tmp_path: Path) -> None:
    masked = load_masked(write_checkpoint(tmp_path / "dreamon", "dreamon"))
    facts = masked.model.facts
    assert facts.expand_id >= 0
    assert facts.delete_id == masked.roles.stop >= 0
    assert not facts.forbidden[[facts.expand_id, facts.delete_id]].any()


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_text_of_a_special_token_is_text(tmp_path: Path, layout: str) -> None:
    masked = load_masked(write_checkpoint(tmp_path / layout, layout))
    tokenizer = masked.model.tokenizer
    text = "".join(TINY_LAYOUTS[layout].specials) + " e\u0301 \u00e9\r\n\t\U0001f600"
    ids = tokenizer.encode(text)
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert not masked.model.facts.forbidden[ids].any()
    assert masked.model.facts.mask_id not in ids


def test_published_ids_stand_in_for_a_vocabulary_that_does_not_name_its_mask(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    mask = special_tokens(folder)["<|MASK|>"]

    def forget(stored: dict[str, Any]) -> None:
        stored["added_tokens"] = [token for token in stored["added_tokens"] if token["content"] != "<|MASK|>"]

    edit_json(folder / "tokenizer.json", forget)
    assert "<|MASK|>" in refused(folder, "model_unsupported")
    edit_json(folder / "config.json", lambda config: config.update(mask_token_id=mask + 1))
    masked = load_masked(folder)
    assert masked.model.facts.mask_id == mask + 1
    assert masked.model.facts.forbidden[mask + 1]


def test_a_tokenizer_in_parts_is_the_same_as_in_one_file(tmp_path: Path) -> None:
    parts, whole = (write_checkpoint(tmp_path / name / "dream", "dream") for name in ("parts", "whole"))
    assert not (parts / "tokenizer.json").exists()
    (whole / "tokenizer.json").write_text(json.dumps(tokenizer_json(TINY_LAYOUTS["dream"])))
    text = "def  f(a1):\r\n\treturn a1 =  'e\u0301'\n\n\n"
    left, right = load_masked(parts), load_masked(whole)
    assert left.model.tokenizer.encode(text) == right.model.tokenizer.encode(text)
    assert left.roles == right.roles
    assert torch.equal(left.model.facts.forbidden, right.model.facts.forbidden)


def test_parts_that_are_damaged_or_say_too_little_are_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "dream", "dream")
    pristine = (folder / "tokenizer_config.json").read_text()
    for damaged in (
        "{}",
        '{"added_tokens_decoder": {"x": {"content": "<|mask|>"}}}',
        '{"added_tokens_decoder": {"1": 2}}',
    ):
        (folder / "tokenizer_config.json").write_text(damaged)
        assert "tokenizer_config.json" in refused(folder, "model_corrupt")
    (folder / "tokenizer_config.json").write_text(pristine)
    (folder / "merges.txt").write_text("no where\n")
    assert "vocab.json" in refused(folder, "model_corrupt")
    (folder / "merges.txt").unlink()
    assert "merges.txt" in refused(folder, "model_corrupt")
    llada = write_checkpoint(tmp_path / "llada", "llada")
    stored = json.loads((llada / "tokenizer.json").read_text())
    (llada / "tokenizer.json").unlink()
    for name in ("tokenizer_config.json", "merges.txt"):
        (llada / name).write_text(pristine if name.endswith("json") else "")
    (llada / "vocab.json").write_text(json.dumps(stored["model"]["vocab"]))
    assert "cuts its text" in refused(llada, "model_unsupported")


def test_the_weight_names_of_llada_mean_what_its_own_code_computes(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "llada", "llada")
    masked = load_masked(folder)
    ids = masked.model.tokenizer.encode("def f(x):\n    return x")
    reference = llada_forward(folder, ids, heads=HEADS, theta=500_000.0, epsilon=1e-5)
    context = masked.model.open(Known(tuple(ids[:5]), tuple(ids[9:])))
    logits = masked.model.step(context, [canvas_of(ids[5:9])])[0].logits
    torch.testing.assert_close(logits, reference[5:9], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("layout", "model_type"),
    [
        ("open-dcoder", "qwen2"),
        ("dream", "qwen2"),
        ("sdar", "qwen3"),
        ("a2d-bd3lm", "qwen3"),
        ("stable-diffcoder", "llama"),
    ],
)
def test_the_library_s_own_loader_makes_the_same_model(tmp_path: Path, layout: str, model_type: str) -> None:
    """Our reading of config.json and of the weights, against transformers' own, where the names allow it."""
    from transformers import AutoModelForCausalLM

    folder = write_checkpoint(tmp_path / layout, layout)
    masked = load_masked(folder)

    def as_stock(config: dict[str, Any]) -> None:
        config["model_type"] = model_type
        for name in ("auto_map", "pad_token_id", "mask_token_id"):  # ids of the real size are outside this vocabulary
            config.pop(name, None)

    edit_json(folder / "config.json", as_stock)
    stock = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    ids = torch.tensor([masked.model.tokenizer.encode("def f(x):\n    return x")])
    with torch.no_grad():
        expected, found = (network(ids, use_cache=False).logits for network in (stock, masked.model.network))
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)


def test_a_length_calibration_beside_the_weights_is_read(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "dream", "dream")
    assert load_masked(folder).model.facts.calibration == LengthCalibration()
    LengthCalibration(floor=0.5).save(folder / CALIBRATION)
    assert load_masked(folder).model.facts.calibration.floor == 0.5
    (folder / CALIBRATION).write_text("[]")
    assert CALIBRATION in refused(folder, "model_corrupt")


def test_nothing_of_a_checkpoint_is_executed(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "llada", "llada")
    trap = "raise SystemExit('code of a checkpoint was run')\n"
    for name in ("configuration_llada.py", "modeling_llada.py", "__init__.py"):
        (folder / name).write_text(trap)
    assert "auto_map" in json.loads((folder / "config.json").read_text())
    assert load_masked(folder).layout.name == "llada"


@pytest.mark.parametrize("layout", ["llada", "stable-diffcoder"])
def test_a_missing_a_left_over_and_a_misshapen_tensor_are_refused(tmp_path: Path, layout: str) -> None:
    folder = write_checkpoint(tmp_path / layout, layout)
    (file,) = weight_files(folder)
    original, name = file.read_bytes(), sorted(load_file(file))[0]
    edit_weights(folder, lambda tensors: tensors.pop(name))
    assert "lacks 1 tensors" in refused(folder, "model_corrupt")
    file.write_bytes(original)
    edit_weights(folder, lambda tensors: tensors.update({"model.expert_bias": torch.ones(3)}))
    assert "left over 1 tensors (model.expert_bias)" in refused(folder, "model_corrupt")
    file.write_bytes(original)
    edit_weights(folder, lambda tensors: tensors.update({name: tensors[name][:-1].clone()}))
    assert f"{name} is " in refused(folder, "model_corrupt")
    file.write_bytes(original)
    edit_weights(folder, lambda tensors: tensors.update({name: tensors[name].to(torch.int8)}))
    assert "int8" in refused(folder, "model_unsupported")
    file.write_bytes(original[:1000])
    refused(folder, "model_corrupt")


def test_a_tied_head_may_be_stored_but_not_differ(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "open-dcoder", "open-dcoder")
    network = load_masked(folder).model.network
    assert network.lm_head.weight is network.model.embed_tokens.weight
    edit_weights(folder, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}))
    load_masked(folder)
    edit_weights(folder, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"] + 1}))
    assert "another matrix" in refused(folder, "model_corrupt")


def test_an_untied_checkpoint_without_a_head_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "open-dcoder", "open-dcoder")
    edit_json(folder / "config.json", lambda config: config.update(tie_word_embeddings=False))
    assert "lm_head.weight" in refused(folder, "model_corrupt")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    weight_files(folder)[1].unlink()
    assert "lacks model-00002-of-00002.safetensors" in refused(folder, "model_missing")
    (folder / "pytorch_model.bin").write_bytes(b"")
    assert "can run code" in refused(folder, "model_unsupported")
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refused(folder, "model_missing")
    (folder / "config.json").write_text("{")
    refused(folder, "model_corrupt")
    (folder / "config.json").unlink()
    refused(folder, "model_missing")


def test_an_index_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    edit_json(folder / "model.safetensors.index.json", lambda index: index.update(weight_map={"a": "../x.safetensors"}))
    assert "outside its folder" in refused(folder, "model_corrupt")


@pytest.mark.parametrize(
    ("layout", "changed", "kind"),
    [
        ("dream", {"rope_theta": None}, "model_corrupt"),
        ("dream", {"rope_theta": 0}, "model_corrupt"),
        ("dream", {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}}, "model_corrupt"),
        ("dream", {"rope_scaling": {"type": "yarn", "factor": 4.0}}, "model_unsupported"),
        ("dream", {"hidden_act": "gelu"}, "model_unsupported"),
        ("dream", {"use_sliding_window": True}, "model_unsupported"),
        ("dream", {"num_key_value_heads": 3}, "model_corrupt"),
        ("dream", {"hidden_size": "32"}, "model_corrupt"),
        ("dream", {"num_hidden_layers": 0}, "model_corrupt"),
        ("sdar", {"layer_types": ["sliding_attention", "full_attention"]}, "model_unsupported"),
        ("llada", {"alibi": True}, "model_unsupported"),
        ("llada", {"block_type": "sequential"}, "model_unsupported"),
        ("llada", {"include_qkv_bias": True}, "model_unsupported"),
        ("llada", {"scale_logits": True}, "model_unsupported"),
        ("llada", {"rms_norm_eps": None}, "model_corrupt"),
        ("llada", {"model_type": "gpt_neox"}, "model_unsupported"),
    ],
)
def test_a_configuration_the_stock_class_does_not_compute_is_refused(
    tmp_path: Path, layout: str, changed: dict[str, Any], kind: str
) -> None:
    folder = write_checkpoint(tmp_path / layout, layout)
    edit_json(folder / "config.json", lambda config: config.update(changed))
    refused(folder, kind)


def test_rope_theta_is_read_where_it_stands(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "dream", "dream")
    network = load_masked(folder).model.network
    frequencies = network.model.rotary_emb.inv_freq
    assert float(frequencies[1]) == pytest.approx(1_000_000.0 ** (-1 / 4))
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    assert architecture_of(config, LAYOUTS["dream"]).rope_theta == 1_000_000.0


def test_a_tokenizer_that_could_not_give_text_back_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    pristine = (folder / "tokenizer.json").read_text()
    edit_json(folder / "tokenizer.json", lambda stored: stored.update(pre_tokenizer={"type": "Metaspace"}))
    assert "does not work on bytes" in refused(folder, "model_unsupported")
    (folder / "tokenizer.json").write_text(pristine)
    edit_json(folder / "tokenizer.json", lambda stored: stored["model"].update(type="Unigram"))
    assert "is no BPE" in refused(folder, "model_unsupported")
    (folder / "tokenizer.json").write_text(pristine)
    edit_json(folder / "tokenizer.json", lambda stored: stored["model"].update(merges=[["nowhere", "x"]]))
    refused(folder, "model_corrupt")
    (folder / "tokenizer.json").write_text(pristine)
    edit_json(folder / "tokenizer.json", lambda stored: stored["model"]["vocab"].update({"ab": 10_000}))
    assert "no embedding" in refused(folder, "model_corrupt")


def test_options_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "dream", "dream")
    assert "int3" in refused(folder, "model_unsupported", precision="int3")
    assert "no layout" in refused(folder, "model_unsupported", layout="nonsense")
    if not torch.cuda.is_available():
        assert "cuda" in refused(folder, "model_unsupported", device="cuda")
