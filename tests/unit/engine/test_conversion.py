"""From a GGUF to a denoiser, on a tiny file: what is kept and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from engine.models.conversion import DOWN, LOW_RANK_PARTS, OUTER, UP, convert_gguf
from engine.models.shape import PARTS
from engine.protocol.errors import EngineError
from tests.fakes.tiny_loading import difference, load, logits
from tests.fakes.tiny_model import LAYERS, SPECIALS, TOKENS, TinyGguf, write_tiny_adapter, write_tiny_gguf


def test_int8_is_near_the_float_path(tiny: Path) -> None:
    assert difference(logits(load(tiny)), logits(load(tiny, precision="fp32"))) < 0.1


def test_bf16_is_near_the_float_path(tiny: Path) -> None:
    assert difference(logits(load(tiny, precision="bf16")), logits(load(tiny, precision="fp32"))) < 0.05


def test_a_file_without_a_head_uses_its_embedding(tmp_path: Path) -> None:
    path = tmp_path / "tied.gguf"
    write_tiny_gguf(path, TinyGguf(tied=True))
    model = load(path, precision="fp32")
    assert difference(logits(model), logits(load(path, name="tied8"))) < 0.2


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_embedding_is_not_kept_beside_the_head(tmp_path: Path, tied: bool) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, TinyGguf(tied=tied))
    convert_gguf(path, tmp_path / "out")
    kept = load_file(tmp_path / "out" / OUTER)
    assert kept.keys() == {"final_norm"} | (set() if tied else {"embedding"})


def test_without_the_kernel_the_logits_are_the_same(tiny: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [logits(load(tiny, adapter=adapter), adapted=adapted) for adapted in (False, True)]
    for module in ("engine.models.int8_weights", "engine.runtime.linear"):
        monkeypatch.setattr(f"{module}.find_kernel", lambda: None)
    unpacked = load(tiny, adapter=adapter)
    for adapted in (False, True):
        torch.testing.assert_close(logits(unpacked, adapted=adapted), first[adapted], rtol=1e-4, atol=1e-4)


def test_the_patches_that_are_not_folded_in_lie_beside_their_matrices(tiny: Path, adapter: Path) -> None:
    load(tiny, adapter=adapter)
    (file,) = (tiny.parent / "cache" / "tiny-int8").glob("adapter-*/layer-001.safetensors")
    parts = {name.removesuffix(".weight") for name in load_file(file) if name.endswith(".weight")}
    unfolded = {f"{part}{factor}" for part in LOW_RANK_PARTS for factor in (DOWN, UP)}
    assert parts == (set(PARTS) - set(LOW_RANK_PARTS)) | unfolded


def test_facts_come_from_the_file(tiny: Path) -> None:
    facts = load(tiny, window_tokens=1_000_000).facts
    special = facts.special
    assert (facts.vocab_size, facts.window_tokens, facts.family) == (len(TOKENS), 256, "hybrid")
    assert (facts.can_draft, facts.adapter, facts.precision) == (False, "", "int8")
    named = {TOKENS[special.fim_prefix], TOKENS[special.fim_suffix], TOKENS[special.fim_middle]}
    assert named == {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}
    assert {TOKENS[index] for index in special.special} == set(SPECIALS)
    assert TOKENS.index("<|endoftext|>") in special.end
    assert special.end < special.special


def test_without_an_adapter_adapted_rows_are_plain_and_masks_are_refused(tiny: Path) -> None:
    model = load(tiny)
    assert torch.equal(logits(model, adapted=True), logits(model))
    with pytest.raises(EngineError) as failure:
        logits(model, adapted=True, ids=[model.facts.mask_id])
    assert failure.value.kind == "bad_request"


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_adapted_rows_equal_the_dense_sum_of_weights_and_patch(tiny: Path, adapter: Path, precision: str) -> None:
    model = load(tiny, adapter=adapter, precision=precision)
    assert model.facts.can_draft
    assert model.facts.adapter == "patch"
    plain = logits(load(tiny, precision="fp32"))
    folded = logits(load(_dense_sum(tiny, adapter), precision="fp32"))
    assert difference(plain, folded) > 0.3
    bound = 0.15 if precision == "int8" else 0.01
    assert difference(logits(model, adapted=True), folded) < bound
    assert difference(logits(model), plain) < bound


def _dense_sum(tiny: Path, adapter: Path) -> Path:
    """A second file whose matrices are the first one's plus B A, made from the adapter's own tensors."""
    import gguf

    modules = {
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    patch = {name: tensor.float() for name, tensor in load_file(adapter).items()}
    reader = gguf.GGUFReader(tiny)
    path = tiny.with_name("dense.gguf")
    writer = gguf.GGUFWriter(path, "qwen2")
    for name, stored in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind, *inner = stored.types
            writer.add_key_value(name, stored.contents(), kind, sub_type=inner[0] if inner else None)
    for tensor in reader.tensors:
        dense = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
        _, layer, short, *_ = [*tensor.name.split("."), "", ""]
        if short in modules and tensor.name.endswith("weight"):
            prefix = f"layers.{layer}.{modules[short]}"
            dense = dense + patch[f"{prefix}.lora_B"] @ patch[f"{prefix}.lora_A"]
        writer.add_tensor(tensor.name, dense.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    "key",
    [
        "qwen2.block_count",
        "qwen2.context_length",
        "qwen2.rope.freq_base",
        "qwen2.attention.layer_norm_rms_epsilon",
        "qwen2.attention.head_count",
        "qwen2.attention.head_count_kv",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.token_type",
        "tokenizer.ggml.merges",
    ],
)
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, TinyGguf(fields={key: None}))
    with pytest.raises(EngineError, match=key.replace(".", r"\.")) as failure:
        convert_gguf(path, tmp_path / "out")
    assert failure.value.kind == "model_corrupt"


@pytest.mark.parametrize(
    ("fields", "kind", "said"),
    [
        ({"general.architecture": "llama"}, "model_unsupported", "llama"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "model_unsupported", "llama-bpe"),
        ({"tokenizer.ggml.tokens": list(TOKENS[:-9]) + ["x"] * 9}, "model_corrupt", "special token"),
        ({"qwen2.attention.head_count": 3}, "model_corrupt", "3 heads"),
        ({"qwen2.attention.head_count_kv": 1}, "model_corrupt", "size"),
        ({"qwen2.attention.head_count_kv": 0}, "model_corrupt", "0 key-value heads"),
        ({"qwen2.feed_forward_length": 97}, "model_corrupt", "size"),
        ({"qwen2.rope.freq_base": "much"}, "model_corrupt", "holds a str"),
        ({"general.alignment": 0}, "model_corrupt", "alignment"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, fields: dict[str, Any], kind: str, said: str) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, TinyGguf(fields=fields))
    with pytest.raises(EngineError, match=said) as failure:
        convert_gguf(path, tmp_path / "out")
    assert failure.value.kind == kind


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.1, 0.3, 0.6, 0.9, 0.999])
def test_a_file_cut_short_is_damaged(tiny: Path, share: float) -> None:
    whole = tiny.read_bytes()
    tiny.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(EngineError) as failure:
        convert_gguf(tiny, tiny.parent / "out")
    assert failure.value.kind == "model_corrupt"
    assert "models pull" in failure.value.remedy


@pytest.mark.parametrize("content", [b"no model at all", b"GGUF", b"GGUF\x01\0\0\0", b"GGUF\x03\0\0\0" + b"\xff" * 400])
def test_garbage_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage.gguf"
    path.write_bytes(content)
    with pytest.raises(EngineError) as failure:
        load(path)
    assert failure.value.kind == "model_corrupt"


@pytest.mark.parametrize("position", range(4, 240, 11))
def test_a_damaged_header_never_escapes_as_another_error(tiny: Path, position: int) -> None:
    content = bytearray(tiny.read_bytes())
    content[position : position + 4] = b"\xff\xfe\xfd\xfc"
    tiny.write_bytes(content)
    with pytest.raises(EngineError) as failure:
        convert_gguf(tiny, tiny.parent / "out")
    assert failure.value.kind in {"model_corrupt", "model_unsupported"}


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    for precision in ("int8", "fp32"):
        with pytest.raises(EngineError) as failure:
            load(tmp_path / "none.gguf", precision=precision)
        assert failure.value.kind == "model_missing"
        assert "models pull" in failure.value.remedy


@pytest.mark.parametrize(("precision", "device"), [("int4", "cpu"), ("int8", "cuda")])
def test_an_unknown_precision_is_refused(tiny: Path, precision: str, device: str) -> None:
    with pytest.raises(EngineError) as failure:
        load(tiny, precision=precision, device=device)
    assert failure.value.kind == "model_unsupported"


@pytest.mark.parametrize("fault", ["content", "digest", "base", "tensor", "mask", "size", "absent", "no_digest"])
def test_a_damaged_adapter_is_refused(tiny: Path, adapter: Path, fault: str) -> None:
    base = write_tiny_gguf(tiny)
    digest_file = adapter.with_name(adapter.name + ".sha256")
    if fault == "content":
        adapter.write_bytes(adapter.read_bytes()[:-1] + b"\x01")
    elif fault == "digest":
        digest_file.write_text("", encoding="ascii")
    elif fault == "base":
        write_tiny_adapter(adapter, "0" * 64)
    elif fault == "tensor":
        write_tiny_adapter(adapter, base, drop="layers.1.mlp.up_proj.lora_A")
    elif fault == "mask":
        write_tiny_adapter(adapter, base, drop="mask_embedding")
    elif fault == "size":
        write_tiny_gguf(tiny, TinyGguf(fields={"qwen2.block_count": LAYERS + 1}))
        write_tiny_adapter(adapter, write_tiny_gguf(tiny, TinyGguf(fields={"qwen2.block_count": LAYERS + 1})))
    elif fault == "absent":
        adapter.unlink()
    else:
        digest_file.unlink()
    with pytest.raises(EngineError) as failure:
        load(tiny, adapter=adapter)
    assert failure.value.kind == ("model_missing" if fault in {"absent", "no_digest"} else "model_corrupt")
    assert "without an adapter" in failure.value.remedy
