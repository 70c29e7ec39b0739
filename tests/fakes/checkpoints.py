"""Tiny random checkpoints in every published layout: `python -m tests.fakes.checkpoints DIR` writes them all.

Each has the files, key names, tensor names and special tokens of the real one; only the sizes are small. They keep the
real ones' oddities, too: rows of the embedding that no token belongs to, an `auto_map` that must never be followed, a
normaliser that must not be applied, special tokens at the front of the vocabulary, a tokenizer in parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from engine.tokenizer import QWEN2_SPLIT, byte_alphabet
from tests.fakes.tiny_gemma import write_diffusion_gemma

LAYERS, HIDDEN, HEADS, KV_HEADS, INTERMEDIATE, WINDOW = 2, 32, 4, 2, 64, 4096
SPARE_ROWS = 5
"""Rows of the embedding behind the vocabulary, as the published checkpoints have them."""

MERGES = ("d e", "de f", "Ġ Ġ", "ĠĠ ĠĠ", "r e", "t u", "re tu", "r n", "retu rn", "Ċ Ċ", "Ġ =")
_QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>")
_SEED = (
    *("<[begin▁of▁sentence]>", "<[PAD▁TOKEN]>", "<[end▁of▁sentence]>"),
    *("<[SEP▁TOKEN]>", "<[fim-middle]>", "<[PLHD5_never_used]>"),
)
_LLADA = (
    *("<|startoftext|>", "<|endoftext|>", "[CLS]", "<|mdm_mask|>"),
    *("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
)


@dataclass(frozen=True)
class TinyLayout:
    """What one checkpoint looks like. specials stand behind the bytes and merges, or in front of them.

    in_parts: the tokenizer is vocab.json, merges.txt and tokenizer_config.json, with code of its own beside them.
    """

    stock: str
    config: Mapping[str, Any]
    specials: Sequence[str]
    specials_first: bool = False
    in_parts: bool = False
    tied: bool = False
    shards: int = 1
    layers: int = LAYERS
    head_dim: int = HIDDEN // HEADS
    kv_heads: int = KV_HEADS
    rope_theta: float = 1_000_000.0
    stored_name: Callable[[str], str] = field(default=str)


def _remote(name: str, kind: str) -> dict[str, Any]:
    return {
        "architectures": [kind],
        "auto_map": {"AutoConfig": f"configuration_{name}.Config", "AutoModel": f"modeling_{name}.{kind}"},
        "model_type": name,
    }


def _dream(*extra: str) -> TinyLayout:
    config = {**_remote("Dream", "DreamModel"), "mask_token_id": 151666, "pad_token_id": 151643}
    specials = (*_QWEN, *_QWEN_FIM, "<|beginoftext|>", "<|mask|>", *extra)
    return TinyLayout("qwen2", config, specials, in_parts=True, shards=2)


def _a2d(kind: str) -> TinyLayout:
    config = {"model_type": f"a2d-{kind}", "architectures": [f"A2D{kind.title()}LMHeadModel"]}
    wide = 16 if kind == "qwen3" else HIDDEN // HEADS
    return TinyLayout(kind, config, (*_QWEN, *_QWEN_FIM, "<|mask|>"), tied=True, head_dim=wide)


def _llada_name(name: str) -> str:
    outer = {
        "model.embed_tokens.weight": "model.transformer.wte.weight",
        "model.norm.weight": "model.transformer.ln_f.weight",
        "lm_head.weight": "model.transformer.ff_out.weight",
    }
    inner = {
        "self_attn.o_proj": "attn_out",
        "self_attn.": "",
        "mlp.gate_proj": "ff_proj",
        "mlp.up_proj": "up_proj",
        "mlp.down_proj": "ff_out",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ff_norm",
        "model.layers.": "model.transformer.blocks.",
    }
    if name in outer:
        return outer[name]
    for stock, llada in inner.items():
        name = name.replace(stock, llada)
    return name


TINY_LAYOUTS: Mapping[str, TinyLayout] = {
    "open-dcoder": TinyLayout("qwen2", {"model_type": "qwen2"}, (*_QWEN, *_QWEN_FIM, "<M>"), tied=True),
    "a2d-mdlm": _a2d("qwen2"),
    "a2d-bd3lm": _a2d("qwen3"),
    "dream": _dream(),
    "dream-coder": _dream(),
    "diffucoder": _dream("<|dlm_pad|>"),
    "dreamon": _dream("<|expand|>"),
    "llada": TinyLayout(
        "llama",
        _remote("llada", "LLaDAModelLM"),
        _LLADA,
        kv_heads=HEADS,
        rope_theta=500_000.0,
        stored_name=_llada_name,
    ),
    "sdar": TinyLayout("qwen3", _remote("sdar", "SDARForCausalLM"), (*_QWEN, "<|MASK|>"), head_dim=16, shards=2),
    "stable-diffcoder": TinyLayout("llama", {"model_type": "llama"}, _SEED, specials_first=True, rope_theta=500_000.0),
}


def write_checkpoint(folder: Path, layout: str, *, seed: int = 0, layers: int = LAYERS) -> Path:
    """Write one checkpoint; equal bytes for equal arguments. The folder's last name should be the layout's."""
    tiny = replace(TINY_LAYOUTS[layout], layers=layers)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_json(tiny)
    rows = max(token["id"] for token in tokenizer["added_tokens"]) + 1 if not tiny.specials_first else 0
    rows = max(rows, len(tokenizer["model"]["vocab"])) + SPARE_ROWS
    config = _llada_config(tiny, rows) if layout == "llada" else _stock_config(tiny, rows)
    if tiny.in_parts:
        _write_parts(folder, tokenizer)
    else:
        _write_json(folder / "tokenizer.json", tokenizer)
    _write_json(folder / "config.json", config)
    _write_weights(folder, tiny, rows, seed)
    return folder


def write_all(root: Path, seed: int = 0) -> dict[str, Path]:
    """Every layout below `root`, each in a folder of its name; by layout."""
    return {name: write(root / name, seed) for name, write in writers().items()}


def writers() -> dict[str, Callable[[Path, int], Path]]:
    """How a checkpoint of each layout is written, of all families: (folder, seed) to the folder."""

    def masked(layout: str) -> Callable[[Path, int], Path]:
        return lambda folder, seed: write_checkpoint(folder, layout, seed=seed)

    found = {layout: masked(layout) for layout in TINY_LAYOUTS}
    found["diffusion-gemma"] = lambda folder, seed: write_diffusion_gemma(folder, seed=seed)
    return found


def tokenizer_json(tiny: TinyLayout) -> dict[str, Any]:
    """A byte-level BPE as the `tokenizers` library stores it, with the layout's special tokens."""
    words = [*byte_alphabet().values(), *(merge.replace(" ", "") for merge in MERGES)]
    start = len(tiny.specials) if tiny.specials_first else 0
    vocabulary = {word: start + index for index, word in enumerate(words)}
    first = 0 if tiny.specials_first else len(words)
    special = {text: first + index for index, text in enumerate(tiny.specials)}
    if tiny.specials_first:  # as in tokenizers made like Llama 3's: special tokens stand in the vocabulary as well
        vocabulary = {**special, **vocabulary}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": text, **flags} for text, index in special.items()],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            ],
        },
        "post_processor": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [merge.split(" ") for merge in MERGES],
        },
    }


def special_tokens(folder: Path) -> dict[str, int]:
    """The special tokens of a checkpoint, as its files name them."""
    whole = folder / "tokenizer.json"
    if whole.is_file():
        return {token["content"]: token["id"] for token in json.loads(whole.read_text())["added_tokens"]}
    named = json.loads((folder / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    return {token["content"]: int(index) for index, token in named.items()}


def _write_parts(folder: Path, tokenizer: Mapping[str, Any]) -> None:
    special = {str(token["id"]): {"content": token["content"], "special": True} for token in tokenizer["added_tokens"]}
    _write_json(folder / "vocab.json", tokenizer["model"]["vocab"])
    _write_json(
        folder / "tokenizer_config.json", {"added_tokens_decoder": special, "tokenizer_class": "DreamTokenizer"}
    )
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES, ""]), encoding="utf-8")


def _stock_config(tiny: TinyLayout, rows: int) -> dict[str, Any]:
    return {
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        **({"head_dim": tiny.head_dim, "attention_bias": False} if tiny.stock == "qwen3" else {}),
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": WINDOW,
        "num_attention_heads": HEADS,
        "num_hidden_layers": tiny.layers,
        "num_key_value_heads": tiny.kv_heads,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": tiny.rope_theta,
        "sliding_window": None,
        "tie_word_embeddings": tiny.tied,
        "torch_dtype": "bfloat16",
        "use_sliding_window": False,
        "vocab_size": rows,
        **tiny.config,
    }


def _llada_config(tiny: TinyLayout, rows: int) -> dict[str, Any]:
    return {
        **{"activation_type": "silu", "alibi": False, "attention_dropout": 0.0, "attention_layer_norm": False},
        **{"bias_for_layer_norm": False, "block_group_size": 1, "block_type": "llama", "d_model": HIDDEN},
        **{"embedding_size": rows, "eos_token_id": 126081, "include_bias": False, "include_qkv_bias": False},
        **{"input_emb_norm": False, "layer_norm_type": "rms", "layer_norm_with_affine": True},
        **{"mask_token_id": 126336, "max_sequence_length": WINDOW, "mlp_hidden_size": INTERMEDIATE, "mlp_ratio": 4},
        **{"multi_query_attention": None, "n_heads": HEADS, "n_kv_heads": tiny.kv_heads, "n_layers": tiny.layers},
        **{"rms_norm_eps": 1e-5, "rope": True, "rope_theta": tiny.rope_theta, "scale_logits": False},
        **{"vocab_size": rows, "weight_tying": False},
        **tiny.config,
    }


def _write_weights(folder: Path, tiny: TinyLayout, rows: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, size in _sizes(tiny, rows).items():
        drawn = torch.randn(size, generator=generator)
        # Norms about 1; matrices so that activations keep their size and later tokens matter.
        state[tiny.stored_name(name)] = 1 + 0.1 * drawn if "norm" in name else drawn / size[-1] ** 0.5
    state = {name: tensor.to(torch.bfloat16) for name, tensor in state.items()}
    if tiny.shards == 1:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(state)
    weight_map = {}
    for shard in range(tiny.shards):
        file = f"model-{shard + 1:05}-of-{tiny.shards:05}.safetensors"
        part = {name: state[name] for name in names[shard :: tiny.shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(part, file))
    total = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    _write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def _sizes(tiny: TinyLayout, rows: int) -> dict[str, tuple[int, ...]]:
    wide, narrow = HEADS * tiny.head_dim, tiny.kv_heads * tiny.head_dim
    sizes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (rows, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if not tiny.tied:
        sizes["lm_head.weight"] = (rows, HIDDEN)
    for layer in range(tiny.layers):
        attention = f"model.layers.{layer}.self_attn."
        for part, out in (("q", wide), ("k", narrow), ("v", narrow)):
            sizes[f"{attention}{part}_proj.weight"] = (out, HIDDEN)
            if tiny.stock == "qwen2":
                sizes[f"{attention}{part}_proj.bias"] = (out,)
        sizes[f"{attention}o_proj.weight"] = (HIDDEN, wide)
        if tiny.stock == "qwen3":
            sizes[f"{attention}q_norm.weight"] = sizes[f"{attention}k_norm.weight"] = (tiny.head_dim,)
        for part in ("gate", "up"):
            sizes[f"model.layers.{layer}.mlp.{part}_proj.weight"] = (INTERMEDIATE, HIDDEN)
        sizes[f"model.layers.{layer}.mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
        for part in ("input_layernorm", "post_attention_layernorm"):
            sizes[f"model.layers.{layer}.{part}.weight"] = (HIDDEN,)
    return sizes


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for written in write_all(Path(sys.argv[1])).values():
        print(written)
