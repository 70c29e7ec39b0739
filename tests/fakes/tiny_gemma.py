"""A DiffusionGemma checkpoint small enough to make in a test: the published layout with random weights.

Tensor names, config fields and the ids of special tokens are those of google/diffusiongemma-26B-A4B-it; the tokenizer
is SentencePiece-like BPE with byte fallback, as Gemma's. Everything is written from a seed.
"""

from __future__ import annotations

import json
import math
import string
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

CANVAS = 16
WINDOW = 12  # of sliding layers
LAYERS, HIDDEN = 3, 32
SPREAD = 2.0  # of logits: the larger, the surer the model is, and the sooner a canvas comes to rest
LAYER_SHARE = 0.3  # of what each layer adds: the smaller, the more a place keeps what stands in it
BEYOND = 8  # ids that the model has and the tokenizer has not
END_IDS = (1, 106, 50)
SPECIALS = {0: "<pad>", 1: "<eos>", 2: "<bos>", 3: "<unk>", 4: "<mask>", 50: "<|tool_response>", 105: "<|turn>"} | {
    106: "<turn|>"
}
MERGES = ("d e", "de f", "▁ ▁", "▁▁ ▁▁", "r e", "t u", "re tu", "r n", "retu rn", "i n", "o r")


def write_diffusion_gemma(folder: Path, *, seed: int = 0, config: dict[str, Any] | None = None) -> Path:
    """Write the checkpoint and return its folder. `config` overrides top-level fields of config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_table()
    fields = config_fields(len(tokenizer["model"]["vocab"]) + BEYOND) | (config or {})
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    generation = {"eos_token_id": list(END_IDS), "pad_token_id": 0, "bos_token_id": 2}
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    save_file(checkpoint_tensors(fields, seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def config_fields(vocab_size: int) -> dict[str, Any]:
    """What config.json holds."""
    text = {
        "model_type": "diffusion_gemma_text",
        "vocab_size": vocab_size,
        "hidden_size": HIDDEN,
        "intermediate_size": 24,
        "moe_intermediate_size": 16,
        "num_hidden_layers": LAYERS,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 8,
        "global_head_dim": 16,
        "sliding_window": WINDOW,
        "num_experts": 4,
        "top_k_experts": 2,
        "max_position_embeddings": 1024,
        "use_bidirectional_attention": "vision",
        "tie_word_embeddings": True,
    }
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "position_embedding_size": 16,
    }
    return {
        "model_type": "diffusion_gemma",
        "architectures": ["DiffusionGemmaForBlockDiffusion"],
        "canvas_length": CANVAS,
        "dtype": "float32",
        "eos_token_id": list(END_IDS),
        "tie_word_embeddings": True,
        "text_config": text,
        "vision_config": vision,
    }


def checkpoint_tensors(fields: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    """Random float32 tensors by their published names: the shared stack once, under the decoder."""
    from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    with torch.device("meta"):
        model = DiffusionGemmaForBlockDiffusion(DiffusionGemmaConfig(**fields))
    dice = torch.Generator().manual_seed(seed)
    return {
        name: _random(name, tuple(found.shape), dice)
        for name, found in sorted(model.state_dict().items())
        if name != "lm_head.weight"
        and (not name.startswith("model.encoder.language_model.") or name.endswith("layer_scalar"))
    }


def tokenizer_table() -> dict[str, Any]:
    """A tokenizer.json like Gemma's."""
    reserved = [SPECIALS.get(index, f"<unused{index}>") for index in range(107)]
    characters = [*string.ascii_letters, *string.digits, *string.punctuation, "▁", "\r", "\t", "é"]
    merged = [merge.replace(" ", "") for merge in MERGES]
    pieces = [*reserved, "\n", "\n\n", *(f"<0x{byte:02X}>" for byte in range(256)), *characters, *merged]
    added = [
        {"id": index, "content": content, "special": index not in (107, 108), "normalized": False}
        | {"single_word": False, "lstrip": False, "rstrip": False}
        for index, content in enumerate(pieces[:109])
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: index for index, piece in enumerate(pieces)},
            "merges": [merge.split(" ") for merge in MERGES],
        },
    }


def _random(name: str, shape: tuple[int, ...], dice: torch.Generator) -> torch.Tensor:
    """Values of a size that makes the canvas matter: spread logits, norms and scalars near 1."""
    noise = torch.randn(shape, generator=dice)
    if name.endswith("layer_scalar"):
        return 0.7 + 0.05 * noise
    if name.endswith("embed_tokens.weight"):
        return SPREAD * noise / math.sqrt(shape[-1])
    if name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
        return LAYER_SHARE * (1 + 0.1 * noise)
    if "norm" in name or name.endswith(("router.scale", "per_expert_scale", "std_scale")):
        return 1 + 0.1 * noise
    return noise / math.sqrt(shape[-1]) if len(shape) > 1 else noise * 0.1
