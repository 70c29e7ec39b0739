"""A model file small enough to make in a test: a GGUF of the Qwen2 shape with random weights and a real vocabulary.

Also its adapter, in the format of the shipped one. Both are written from a seed, equal for equal arguments.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

from engine.tokenizer import byte_alphabet

LAYERS, HIDDEN, HEADS, KV_HEADS, INTERMEDIATE = 2, 32, 4, 2, 96
RANK = 4
MERGES = ("d e", "de f", "Ġ Ġ", "ĠĠ ĠĠ", "r e", "t u", "re tu", "r n", "retu rn", "Ċ Ċ", "Ġ =")
SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>"),
    *("<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
)
TOKENS = (*byte_alphabet().values(), *(merge.replace(" ", "") for merge in MERGES), *SPECIALS)
NORMAL, CONTROL = 1, 3


@dataclass(frozen=True)
class TinyGguf:
    """What to write: `fields` overrides a key, or removes it where the value is None; `without` drops tensors."""

    seed: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    tied: bool = False


def write_tiny_gguf(path: Path, recipe: TinyGguf | None = None) -> str:
    """Write the file and return its sha256."""
    recipe = recipe or TinyGguf()
    writer = gguf.GGUFWriter(path, str(recipe.fields.get("general.architecture", "qwen2")))
    for name, value in (_fields() | recipe.fields).items():
        if value is not None and name != "general.architecture":
            _add_field(writer, name, value)
    for name, dense in tiny_tensors(recipe.seed).items():
        if name not in recipe.without and not (recipe.tied and name == "output.weight"):
            _add_tensor(writer, name, dense)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tiny_tensors(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Float32 tensors by GGUF name; the file holds the matrices as Q8_0 or F16 and the rest as F32."""
    dice = np.random.default_rng(seed)
    kv = HIDDEN // HEADS * KV_HEADS
    tensors = {"token_embd.weight": dice.normal(size=(len(TOKENS), HIDDEN))}
    tensors["output.weight"] = dice.normal(size=(len(TOKENS), HIDDEN)) * 0.3
    tensors["output_norm.weight"] = 1 + 0.1 * dice.normal(size=HIDDEN)
    sizes = {
        "attn_q": (HIDDEN, HIDDEN),
        "attn_k": (kv, HIDDEN),
        "attn_v": (kv, HIDDEN),
        "attn_output": (HIDDEN, HIDDEN),
        "ffn_gate": (INTERMEDIATE, HIDDEN),
        "ffn_up": (INTERMEDIATE, HIDDEN),
        "ffn_down": (HIDDEN, INTERMEDIATE),
    }
    for layer in range(LAYERS):
        for name, size in sizes.items():
            tensors[f"blk.{layer}.{name}.weight"] = dice.normal(size=size) / size[1] ** 0.5
        for name in ("attn_q", "attn_k", "attn_v"):
            tensors[f"blk.{layer}.{name}.bias"] = 0.1 * dice.normal(size=sizes[name][0])
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = 1 + 0.1 * dice.normal(size=HIDDEN)
    return {name: dense.astype(np.float32) for name, dense in tensors.items()}


def write_tiny_adapter(path: Path, base_sha256: str, *, seed: int = 0, drop: str = "") -> None:
    """Write a random adapter for the tiny file with that digest, and its `.sha256` file; `drop` leaves one out."""
    dice = torch.Generator().manual_seed(seed)
    kv = HIDDEN // HEADS * KV_HEADS
    sizes = {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (kv, HIDDEN),
        "self_attn.v_proj": (kv, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj": (HIDDEN, INTERMEDIATE),
    }
    tensors = {"mask_embedding": torch.randn(HIDDEN, generator=dice).half()}
    for layer in range(LAYERS):
        for name, (rows, columns) in sizes.items():
            down = torch.randn(RANK, columns, generator=dice) / columns**0.5
            tensors[f"layers.{layer}.{name}.lora_A"] = down.half()
            tensors[f"layers.{layer}.{name}.lora_B"] = (torch.randn(rows, RANK, generator=dice) * 0.3).half()
    tensors.pop(drop, None)
    save_file(tensors, path, metadata={"base_sha256": base_sha256, "rank": str(RANK), "scale": "1.0"})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n", encoding="ascii")


def _fields() -> dict[str, Any]:
    kinds = [CONTROL if token in SPECIALS else NORMAL for token in TOKENS]
    return {
        "qwen2.block_count": LAYERS,
        "qwen2.context_length": 256,
        "qwen2.embedding_length": HIDDEN,
        "qwen2.feed_forward_length": INTERMEDIATE,
        "qwen2.attention.head_count": HEADS,
        "qwen2.attention.head_count_kv": KV_HEADS,
        "qwen2.rope.freq_base": 1_000_000.0,
        "qwen2.attention.layer_norm_rms_epsilon": 1e-6,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": list(TOKENS),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": list(MERGES),
    }


def _add_field(writer: gguf.GGUFWriter, name: str, value: Any) -> None:
    if isinstance(value, str):
        writer.add_string(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    else:
        writer.add_array(name, value)


def _add_tensor(writer: gguf.GGUFWriter, name: str, dense: np.ndarray[Any, Any]) -> None:
    if dense.ndim == 1:
        writer.add_tensor(name, dense)
    elif "attn_v" in name:
        writer.add_tensor(name, dense.astype(np.float16))
    else:
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(dense, kind), raw_dtype=kind)
