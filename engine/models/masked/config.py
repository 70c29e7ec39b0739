"""config.json of a masked checkpoint, read by us into a stock configuration class: `architecture_of`.

`auto_map` and `architectures` are never followed. Whatever would make the stock class compute something else than the
checkpoint was trained with is refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.models.masked.families import Layout, Stock
from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    from transformers import LlamaConfig, Qwen2Config, Qwen3Config

    StockConfig = LlamaConfig | Qwen2Config | Qwen3Config


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers of a decoder that a stock class can run.

    vocab: rows of the embedding. tied: the output head is the embedding. window: positions it was trained on.
    """

    stock: Stock
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    window: int
    rope_theta: float
    norm_epsilon: float
    tied: bool
    attention_bias: bool = False
    mlp_bias: bool = False

    def stock_config(self) -> StockConfig:
        """The configuration object of the stock class."""
        from transformers import LlamaConfig, Qwen2Config, Qwen3Config

        shared: dict[str, Any] = {
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "hidden_act": "silu",
            "max_position_embeddings": self.window,
            "rms_norm_eps": self.norm_epsilon,
            "tie_word_embeddings": self.tied,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            "attention_dropout": 0.0,
            "use_cache": False,
            "pad_token_id": None,
        }
        if self.stock == "llama":
            biases: dict[str, Any] = {"attention_bias": self.attention_bias, "mlp_bias": self.mlp_bias}
            return LlamaConfig(**shared, **biases, head_dim=self.head_dim)
        if self.stock == "qwen3":
            return Qwen3Config(**shared, attention_bias=self.attention_bias, head_dim=self.head_dim)
        return Qwen2Config(**shared)


def architecture_of(config: Mapping[str, Any], layout: Layout) -> Architecture:
    """Read a config.json. Raises EngineError(model_corrupt) for missing or senseless numbers, EngineError
    (model_unsupported) for something the stock class does not compute."""
    architecture = _of_llada(config) if config.get("model_type") == "llada" else _of_stock(config, layout)
    sizes = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "window")
    for name in sizes:
        if getattr(architecture, name) < 1:
            raise _senseless(f"{name} is {getattr(architecture, name)}")
    if architecture.heads % architecture.kv_heads:
        raise _senseless(f"{architecture.heads} heads cannot share {architecture.kv_heads} key-value heads")
    if architecture.head_dim % 2:
        raise _senseless(f"heads of {architecture.head_dim} numbers cannot be rotated in pairs")
    if not (architecture.rope_theta > 0 and architecture.norm_epsilon > 0):
        raise _senseless("rope_theta and rms_norm_eps must be positive")
    return architecture


def _of_stock(config: Mapping[str, Any], layout: Layout) -> Architecture:
    stock: Stock = layout.stock or ("qwen3" if str(config.get("model_type")).endswith("qwen3") else "qwen2")
    heads = _whole(config, "num_attention_heads")
    hidden = _whole(config, "hidden_size")
    head_dim = _whole(config, "head_dim", hidden // max(heads, 1))
    _require(config, "hidden_act", {"silu"}, "silu")
    _require(config, "use_sliding_window", {False}, False)
    if set(config.get("layer_types") or ["full_attention"]) != {"full_attention"}:
        raise _unsupported("layer_types", config["layer_types"])
    if stock == "qwen2" and head_dim * heads != hidden:
        raise _unsupported("head_dim", head_dim)
    _require(config, "pretraining_tp", {1}, 1)
    return Architecture(
        stock=stock,
        layers=_whole(config, "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=_whole(config, "num_key_value_heads", heads),
        head_dim=head_dim,
        intermediate=_whole(config, "intermediate_size"),
        vocab=_whole(config, "vocab_size"),
        window=_whole(config, "max_position_embeddings"),
        rope_theta=_rope_theta(config),
        norm_epsilon=_number(config, "rms_norm_eps"),
        tied=_flag(config, "tie_word_embeddings", False),
        attention_bias=_flag(config, "attention_bias", False),
        mlp_bias=_flag(config, "mlp_bias", False),
    )


# What LLaDA's own code could switch on, and the only value for which it computes what Llama computes.
_LLADA_AS_LLAMA: Mapping[str, Any] = {
    "activation_type": "silu",
    "alibi": False,
    "attention_layer_norm": False,
    "bias_for_layer_norm": False,
    "block_type": "llama",
    "clip_qkv": None,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "rope": True,
    "scale_logits": False,
    "block_group_size": 1,
}


def _of_llada(config: Mapping[str, Any]) -> Architecture:
    for name, wanted in _LLADA_AS_LLAMA.items():
        _require(config, name, {wanted}, wanted)
    heads = _whole(config, "n_heads")
    hidden = _whole(config, "d_model")
    kv_heads = 1 if config.get("multi_query_attention") else _whole(config, "n_kv_heads", heads)
    intermediate = _whole(config, "mlp_hidden_size", _whole(config, "mlp_ratio", 4) * hidden)
    return Architecture(
        stock="llama",
        layers=_whole(config, "n_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=hidden // max(heads, 1),
        intermediate=intermediate,
        vocab=_whole(config, "embedding_size", _whole(config, "vocab_size")),
        window=_whole(config, "max_sequence_length"),
        rope_theta=_number(config, "rope_theta"),
        norm_epsilon=_number(config, "rms_norm_eps"),
        tied=_flag(config, "weight_tying", False),
    )


def _rope_theta(config: Mapping[str, Any]) -> float:
    """The base of the rotary frequencies: never a default, for a model run with another one is quietly worse.

    It stands at the top of config.json, or under `rope_parameters` in files written since transformers 5.
    """
    parameters = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling") or {}
    for source in (parameters, scaling):
        kind = source.get("rope_type", source.get("type", "default"))
        if kind != "default":
            raise _unsupported("rope_type", kind)
    stated = {float(found) for found in (config.get("rope_theta"), parameters.get("rope_theta")) if found is not None}
    if not stated:
        raise _senseless("rope_theta is missing")
    if len(stated) > 1:
        raise _senseless(f"rope_theta is stated as {' and as '.join(str(each) for each in sorted(stated))}")
    return stated.pop()


def _whole(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    found = config.get(name)
    found = default if found is None else found
    if isinstance(found, bool) or not isinstance(found, int):
        raise _senseless(f"{name} is {found!r}")
    return found


def _number(config: Mapping[str, Any], name: str) -> float:
    found = config.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _senseless(f"{name} is {found!r}")
    return float(found)


def _flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    found = config.get(name, default)
    if not isinstance(found, bool):
        raise _senseless(f"{name} is {found!r}")
    return found


def _require(config: Mapping[str, Any], name: str, allowed: set[Any], default: Any) -> None:
    found = config.get(name, default)
    if found not in allowed:
        raise _unsupported(name, found)


def _senseless(what: str) -> EngineError:
    return EngineError("model_corrupt", f"config.json: {what}", "download the checkpoint again")


def _unsupported(name: str, found: object) -> EngineError:
    return EngineError(
        "model_unsupported",
        f"config.json asks for {name} {found!r}, which the class that runs this layout does not compute",
        "use a published checkpoint of the layout as it is",
    )
