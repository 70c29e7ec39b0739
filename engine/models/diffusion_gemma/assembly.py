"""A network without weights, made from a configuration, and the weights put into it one by one.

Nothing is allocated twice: the network is made on the meta device, the encoder takes over the decoder's modules, and
what is to be packed is packed as it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from engine.models.diffusion_gemma.checkpoint import StoredTensor
from engine.runtime.weight_only import Bits, PackedExperts, PackedLinear, PackedWeight

# In a layer these are most of the weights; routers and norms are small, and what they decide is not.
_PACKED_LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_LAYERS = "model.decoder.layers."
_EXPERTS = ("experts.gate_up_proj", "experts.down_proj")


@dataclass(frozen=True, slots=True)
class ModuleForm:
    """What one part of a loaded model is kept in. form: "int8", "int4", "bf16", "fp32" or "fp16"."""

    name: str
    form: str
    bytes: int


def is_packed(name: str) -> bool:
    """Whether the tensor of this name is kept in few bits when those are asked for."""
    if not name.startswith(_LAYERS):
        return False
    return name.endswith(_EXPERTS) or name.split(".")[-2] in _PACKED_LINEARS


def empty_network(fields: Mapping[str, Any]) -> Any:
    """A `DiffusionGemmaForBlockDiffusion` on the meta device, for text only, its encoder sharing the decoder's modules.

    Raises what transformers raises for fields that fit no configuration.
    """
    from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    config = DiffusionGemmaConfig(**fields)
    with torch.device("meta"):
        model = DiffusionGemmaForBlockDiffusion(config)
    encoder, decoder = model.model.encoder, model.model.decoder
    encoder.vision_tower = encoder.embed_vision = None
    text = encoder.language_model
    text.embed_tokens, text.norm = decoder.embed_tokens, decoder.norm
    text.rotary_emb = decoder.rotary_emb = type(decoder.rotary_emb)(config.text_config)
    decoder.embed_tokens.embed_scale = torch.tensor(decoder.embed_tokens.scalar_embed_scale)
    for mine, its in zip(text.layers, decoder.layers, strict=True):
        _share(mine, its, apart="self_attn")
        _share(mine.self_attn, its.self_attn)
    model.lm_head.weight = decoder.embed_tokens.weight
    model.eval()  # type: ignore[no-untyped-call]
    return model


def wanted_tensors(model: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what the network needs, each shared tensor once, under the decoder."""
    found: dict[int, str] = {}
    tensors = model.state_dict(keep_vars=True)
    # The decoder's names come last and win.
    for name, tensor in sorted(tensors.items(), key=lambda item: item[0].startswith("model.decoder.")):
        found[id(tensor)] = name
    return {name: tuple(tensors[name].shape) for name in sorted(found.values())}


def put_weights(
    model: Any,
    index: Mapping[str, StoredTensor],
    dtype: torch.dtype,
    device: torch.device,
    bits: Bits | None,
    progress: Callable[[float], None],
) -> None:
    """Read every tensor into the network as `dtype`, on `device`; layers' matrices in `bits` where not None."""
    if bits is not None:
        for place, layer in enumerate(model.model.decoder.layers):
            _prepare_packing(layer, bits, dtype, device)
            twin = model.model.encoder.language_model.layers[place]
            _share(twin, layer, apart="self_attn")
            _share(twin.self_attn, layer.self_attn)
    total = sum(tensor.values for tensor in index.values()) or 1
    done = 0
    for name, tensor in index.items():
        _put(model, name, tensor.read(), dtype, device, packed=bits is not None and is_packed(name))
        done += tensor.values
        progress(done / total)
    model.lm_head.weight = model.model.decoder.embed_tokens.weight
    model.model.decoder.rotary_emb.to(device)
    embedding = model.model.decoder.embed_tokens
    embedding.embed_scale = embedding.embed_scale.to(device)


def forms_of(model: Any) -> tuple[ModuleForm, ...]:
    """What each module of the loaded network is really kept in, read from the network itself."""
    names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
    forms = []
    for name, module in model.model.decoder.named_modules(prefix="model.decoder"):
        if isinstance(module, PackedWeight):
            size = module.packed.nbytes + module.scale.nbytes
            forms.append(ModuleForm(name, f"int{module.bits}", size))
            continue
        own = list(module.parameters(recurse=False))
        if own:
            forms.append(ModuleForm(name, names.get(own[0].dtype, str(own[0].dtype)), sum(one.nbytes for one in own)))
    return tuple(forms)


def _share(mine: nn.Module, its: nn.Module, apart: str = "") -> None:
    """Give `mine` the children of `its`, all but the one named `apart`."""
    for name, child in its.named_children():
        if name != apart:
            setattr(mine, name, child)


def _prepare_packing(layer: Any, bits: Bits, dtype: torch.dtype, device: torch.device) -> None:
    def pack(shape: torch.Size) -> PackedWeight:
        return PackedWeight(tuple(shape), bits, dtype, device)

    for part in (layer.self_attn, layer.mlp):
        for name in _PACKED_LINEARS:
            if isinstance(linear := getattr(part, name, None), nn.Linear):
                setattr(part, name, PackedLinear(pack(linear.weight.shape)))
    experts = layer.experts
    layer.experts = PackedExperts(pack(experts.gate_up_proj.shape), pack(experts.down_proj.shape), experts.act_fn)


def _put(model: Any, name: str, value: torch.Tensor, dtype: torch.dtype, device: torch.device, *, packed: bool) -> None:
    parent, _, leaf = name.rpartition(".")
    owner = model.get_submodule(parent)
    if packed:
        stack = {"gate_up_proj": "gate_up", "down_proj": "down"}
        target = owner.weight if isinstance(owner, PackedLinear) else getattr(owner, stack[leaf])
        target.pack(value)
    elif leaf in owner._buffers:
        owner._buffers[leaf] = value.to(device, dtype)
    else:
        owner.register_parameter(leaf, nn.Parameter(value.to(device, dtype), requires_grad=False))
