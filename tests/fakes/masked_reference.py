"""What a masked model must predict, computed the long way round: no cache, natural order, every mask written out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.functional import scaled_dot_product_attention, silu

from engine.canvas import FREE, Canvas
from engine.models.canvas_model import StepInput
from engine.models.masked.loading import Masked
from engine.models.masked.weights import weight_files


def uncached(masked: Masked, prefix: Sequence[int], canvas: Sequence[int], suffix: Sequence[int] = ()) -> torch.Tensor:
    """[places, vocab] logits of a canvas between known texts."""
    ids = torch.tensor([[*prefix, *canvas, *suffix]])
    places = torch.arange(ids.shape[1])
    blocks = places // masked.layout.block if masked.layout.block else torch.zeros_like(places)
    visible = (blocks[None, :] <= blocks[:, None])[None, None]
    with torch.no_grad():
        output = masked.model.network(input_ids=ids, attention_mask=visible, is_causal=False, use_cache=False)
    logits: torch.Tensor = output.logits[0]
    start = len(prefix) - (1 if masked.layout.shift else 0)
    return logits[start : start + len(canvas)]


def canvas_of(ids: Sequence[int]) -> StepInput:
    """A canvas of free places that hold `ids`."""
    return StepInput(Canvas.of([(ids, FREE)]))


def llada_forward(folder: Path, ids: Sequence[int], *, heads: int, theta: float, epsilon: float) -> torch.Tensor:
    """[n, vocab] logits of a LLaDA-8B checkpoint, from its own tensor names and nothing else.

    A pre-norm block of the OLMo code that LLaDA is made from: attention without a mask, rotate-half positions,
    `ff_out(silu(ff_proj(x)) * up_proj(x))`.
    """
    tensors = {name: part.float() for file in weight_files(folder) for name, part in load_file(file).items()}
    outer = "model.transformer."
    hidden = tensors[f"{outer}wte.weight"][list(ids)]
    layers = 1 + max(int(name.split(".")[3]) for name in tensors if name.startswith(f"{outer}blocks."))
    for layer in range(layers):
        block = f"{outer}blocks.{layer}."
        part = {name: tensors[f"{block}{name}.weight"] for name in ("q_proj", "k_proj", "v_proj", "attn_out")}
        normed = _norm(hidden, tensors[f"{block}attn_norm.weight"], epsilon)
        query, key, value = (
            (normed @ part[name].T).view(len(ids), heads, -1).transpose(0, 1) for name in ("q_proj", "k_proj", "v_proj")
        )
        seen = scaled_dot_product_attention(_turned(query, theta), _turned(key, theta), value)
        hidden = hidden + seen.transpose(0, 1).flatten(1) @ part["attn_out"].T
        normed = _norm(hidden, tensors[f"{block}ff_norm.weight"], epsilon)
        gate = silu(normed @ tensors[f"{block}ff_proj.weight"].T)
        hidden = hidden + (gate * (normed @ tensors[f"{block}up_proj.weight"].T)) @ tensors[f"{block}ff_out.weight"].T
    return _norm(hidden, tensors[f"{outer}ln_f.weight"], epsilon) @ tensors[f"{outer}ff_out.weight"].T


def _norm(hidden: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    return hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def _turned(rows: torch.Tensor, theta: float) -> torch.Tensor:
    half = rows.shape[-1] // 2
    angle = torch.arange(rows.shape[1])[:, None] * theta ** (-torch.arange(half) / half)
    left, right = rows[..., :half], rows[..., half:]
    return torch.cat((left * angle.cos() - right * angle.sin(), right * angle.cos() + left * angle.sin()), dim=-1)
