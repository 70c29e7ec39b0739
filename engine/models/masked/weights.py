"""Weights of a masked checkpoint: safetensors files into a stock network, name by name, with nothing left over.

A tensor that is missing, left over or of a wrong shape means that the layout is not what it was taken for; such a
checkpoint is refused. Only safetensors are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import torch
from safetensors import SafetensorError, safe_open

from engine.models.checkpoint_json import damaged, read_object
from engine.models.masked.config import Architecture
from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM

Network: TypeAlias = "LlamaForCausalLM | Qwen2ForCausalLM | Qwen3ForCausalLM"

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
_HEAD = "lm_head.weight"
_EMBEDDING = "model.embed_tokens.weight"

# LLaDA's own names (OLMo's) for what Llama calls otherwise; `ff_proj` is the gate, `up_proj` the other half.
_LLADA_OUTER = {
    "model.transformer.wte.weight": _EMBEDDING,
    "model.transformer.ln_f.weight": "model.norm.weight",
    "model.transformer.ff_out.weight": _HEAD,
}
_LLADA_BLOCK = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
}
_LLADA_NAME = re.compile(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.weight")


def plain_name(name: str) -> str:
    """Names of Qwen2, Qwen3 and Llama as they stand."""
    return name


def llada_name(name: str) -> str:
    """The stock name of a tensor of LLaDA-8B; other names stay as they are and are refused as left over."""
    found = _LLADA_NAME.fullmatch(name)
    if found is None or found[2] not in _LLADA_BLOCK:
        return _LLADA_OUTER.get(name, name)
    return f"model.layers.{found[1]}.{_LLADA_BLOCK[found[2]]}.weight"


def load_network(
    folder: Path,
    architecture: Architecture,
    *,
    dtype: torch.dtype,
    device: torch.device | str,
    stock_name: Callable[[str], str] = plain_name,
    progress: Callable[[float], None] | None = None,
) -> Network:
    """Build the stock network and give it the checkpoint's weights, tensor by tensor, so that memory holds them once.

    Raises EngineError(model_missing, model_corrupt or model_unsupported).
    """
    network = stock_network(architecture, "meta")
    wanted = dict(network.state_dict())
    if architecture.tied:
        del wanted[_HEAD]
    found: dict[str, torch.Tensor] = {}
    held: dict[str, Path] = {}
    files = weight_files(folder)
    for count, file in enumerate(files, start=1):
        for stored, tensor in _tensors(file):
            name = stock_name(stored)
            if name in found:
                raise damaged(file, f"{stored} is there twice")
            if name in wanted and tensor.shape != wanted[name].shape:
                raise damaged(file, f"{stored} is {_spoken(tensor)} and must be {_spoken(wanted[name])}")
            if not tensor.is_floating_point():
                raise _quantised(file, stored, tensor.dtype)
            found[name] = tensor.to(device=device, dtype=dtype)
            held[name] = file
        if progress is not None:
            progress(count / len(files))
    if architecture.tied and _HEAD in found and _EMBEDDING in found:
        _require_tied(found, held[_HEAD])
    _require_same_names(set(wanted), set(found), folder)
    network.load_state_dict(found, strict=not architecture.tied, assign=True)
    if architecture.tied:
        network.lm_head.weight = network.model.embed_tokens.weight
    # The rotary frequencies are no weights: they are computed from the configuration, here where they are needed.
    network.model.rotary_emb = type(network.model.rotary_emb)(network.config).to(device)
    network.requires_grad_(False)
    network.train(False)
    return network


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint in order, by its index where it has one.

    Raises EngineError(model_missing or model_corrupt); model_unsupported where there are weights in other formats only.
    """
    index = folder / INDEX
    if index.is_file():
        shards = read_object(index).get("weight_map")
        if not isinstance(shards, dict) or not shards:
            raise damaged(index, "it names no files")
        names = sorted({str(name) for name in shards.values()})
        if any(Path(name).name != name for name in names):
            raise damaged(index, "it names files outside its folder")
    else:
        names = [WEIGHTS]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing and list(folder.glob("*.bin")) + list(folder.glob("*.pt")):
        raise EngineError(
            "model_unsupported",
            f"{folder} has its weights in a format that can run code when it is read",
            "use a checkpoint with safetensors files",
        )
    if missing:
        raise EngineError(
            "model_missing", f"{folder} lacks {', '.join(missing)}", "name the folder that holds the whole checkpoint"
        )
    return [folder / name for name in names]


def stock_network(architecture: Architecture, device: str) -> Network:
    """The stock network with weights of its own making, or without any on the device "meta"."""
    from transformers import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM

    classes = {"llama": LlamaForCausalLM, "qwen2": Qwen2ForCausalLM, "qwen3": Qwen3ForCausalLM}
    config = architecture.stock_config()
    config._attn_implementation = "sdpa"
    with torch.device(device):
        network: Network = classes[architecture.stock](config)
    return network


def _tensors(file: Path) -> Iterator[tuple[str, torch.Tensor]]:
    try:
        with safe_open(file, framework="pt") as stored:
            for name in stored.keys():  # noqa: SIM118 - the library's object is no mapping
                yield name, stored.get_tensor(name)
    except (SafetensorError, OSError) as fault:
        raise damaged(file, str(fault)) from fault


def _require_tied(found: dict[str, torch.Tensor], file: Path) -> None:
    head = found.pop(_HEAD)
    if not torch.equal(head, found[_EMBEDDING]):
        raise damaged(file, f"config.json says that {_HEAD} is the embedding, and it is another matrix")


def _require_same_names(wanted: set[str], found: set[str], folder: Path) -> None:
    faults = []
    for names, what in ((wanted - found, "lacks"), (found - wanted, "has left over")):
        if names:
            shown = ", ".join(sorted(names)[:3])
            faults.append(f"{what} {len(names)} tensors ({shown}{', …' if len(names) > 3 else ''})")
    if faults:
        raise EngineError(
            "model_corrupt",
            f"{folder}: the checkpoint {' and '.join(faults)}",
            "download the checkpoint again, or name the layout it really has",
        )


def _quantised(file: Path, name: str, dtype: torch.dtype) -> EngineError:
    return EngineError(
        "model_unsupported",
        f"{file}: {name} is stored as {dtype}, and only floating-point checkpoints are read",
        "use the checkpoint before it was quantised",
    )


def _spoken(tensor: torch.Tensor) -> str:
    return " x ".join(str(size) for size in tensor.shape) or "a single number"


STOCK_NAMES: Mapping[str, Callable[[str], str]] = {"llada": llada_name}
"""How a layout's tensor names become the stock class's; `plain_name` where nothing is said."""
