"""The Qwen2 shape's forward with gradients: frozen matrices, low-rank terms on the rows of the gap.

Owns the arithmetic between ids and the last norm during training; `engine.models.network` is its lean twin for
running. A test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.models.gguf_file import GgufFile
from engine.models.shape import PARTS, Qwen2Shape
from engine.runtime.attention import RotaryTable
from engine.training.frozen_linear import FrozenLinear, frozen_linear
from engine.training.low_rank import LowRankTerms

KeysValues = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of one layer, each [kv_heads, rows, head_dim] float32."""


@dataclass(frozen=True, slots=True)
class FrozenLayer:
    """Norms [hidden] and qkv_bias float32; `parts` by name of `engine.models.shape.PARTS`."""

    attention_norm: torch.Tensor
    mlp_norm: torch.Tensor
    qkv_bias: torch.Tensor
    parts: dict[str, FrozenLinear]


@dataclass(frozen=True, slots=True)
class FrozenModel:
    """The base model. embedding, head: [vocab, hidden] float32."""

    shape: Qwen2Shape
    layers: tuple[FrozenLayer, ...]
    final_norm: torch.Tensor
    embedding: torch.Tensor
    head: torch.Tensor
    rotary: RotaryTable


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one pass. ids: [n] int64, -1 for a mask; positions: [n] int64; visible: [n, n] bool among themselves.

    Every row sees the whole context.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    visible: torch.Tensor


def load_frozen(
    file: GgufFile,
    *,
    precision: str,
    window: int,
    device: str = "cpu",
) -> FrozenModel:
    """Read the base model for training. Raises EngineError(model_corrupt, model_unsupported) from the file."""
    shape = file.shape()
    layers = []
    for index in range(shape.layers):
        attention_norm, mlp_norm = file.norms(shape, index)
        parts = {part: frozen_linear(file.matrix(shape, index, part).to(device), precision) for part in PARTS}
        bias = file.qkv_bias(shape, index).float()
        layers.append(FrozenLayer(attention_norm.to(device), mlp_norm.to(device), bias.to(device), parts))
    where = torch.device(device)
    return FrozenModel(
        shape,
        tuple(layers),
        file.final_norm(shape).to(device),
        file.embedding(shape).float().to(device),
        file.head(shape).float().to(device),
        RotaryTable(shape.head_dim, shape.rope_theta, window, where),
    )


def encode_context(model: FrozenModel, ids: Sequence[int]) -> list[KeysValues]:
    """Keys and values of a prompt, causally and without the adapter."""
    count = len(ids)
    at = model.embedding.device
    visible = torch.ones(count, count, dtype=torch.bool, device=at).tril()
    rows = Rows(torch.tensor(ids, device=at), torch.arange(count, device=at), visible)
    collected: list[KeysValues] = []
    with torch.no_grad():
        _run(model, None, rows, None, collected)
    return collected


def run_gap(model: FrozenModel, terms: LowRankTerms, rows: Rows, context: Sequence[KeysValues]) -> torch.Tensor:
    """The last norm [n, hidden] of a gap's rows on top of a context, with gradients for `terms`."""
    return _run(model, terms, rows, context, None)


def _run(
    model: FrozenModel,
    terms: LowRankTerms | None,
    rows: Rows,
    context: Sequence[KeysValues] | None,
    collected: list[KeysValues] | None,
) -> torch.Tensor:
    hidden = torch.nn.functional.embedding(rows.ids.clamp_min(0), model.embedding)
    if terms is not None:
        hidden = torch.where((rows.ids < 0)[:, None], terms.mask_embedding, hidden)
    bias = _bias(rows.visible, 0 if context is None else context[0][0].shape[1])
    for index, layer in enumerate(model.layers):

        def product(part: str, x: torch.Tensor, layer: FrozenLayer = layer, index: int = index) -> torch.Tensor:
            frozen = layer.parts[part](x)
            return frozen if terms is None else frozen + terms.apply(index, part, x)

        query, own = _query_keys_values(model, layer, hidden, rows.positions, product)
        if collected is not None:
            collected.append(own)
        known = own if context is None else _joined(context[index], own)
        hidden = hidden + product("output", _attend(query, known, bias, model.shape))
        gate, up = product("gate_up", _norm(hidden, layer.mlp_norm, model.shape)).chunk(2, dim=-1)
        hidden = hidden + product("down", torch.nn.functional.silu(gate) * up)
    return _norm(hidden, model.final_norm, model.shape)


def _query_keys_values(
    model: FrozenModel,
    layer: FrozenLayer,
    hidden: torch.Tensor,
    positions: torch.Tensor,
    product: Callable[[str, torch.Tensor], torch.Tensor],
) -> tuple[torch.Tensor, KeysValues]:
    shape = model.shape
    fused = product("qkv", _norm(hidden, layer.attention_norm, shape)) + layer.qkv_bias
    per_head = fused.view(hidden.shape[0], -1, shape.head_dim)
    rotated = model.rotary.rotate(per_head[:, : shape.heads + shape.kv_heads], positions).transpose(0, 1)
    values = per_head[:, shape.heads + shape.kv_heads :].transpose(0, 1)
    return rotated[: shape.heads], (rotated[shape.heads :], values)


def _attend(query: torch.Tensor, known: KeysValues, bias: torch.Tensor, shape: Qwen2Shape) -> torch.Tensor:
    """query: [heads, n, d]; bias: [n, positions]. Returns [n, heads * d]."""
    keys, values = known
    heads, rows, dim = query.shape
    grouped = query.reshape(shape.kv_heads, -1, dim) * dim**-0.5
    scores = torch.bmm(grouped, keys.transpose(1, 2)).view(shape.kv_heads, -1, rows, keys.shape[1])
    weights = (scores + bias).softmax(-1).view(shape.kv_heads, -1, keys.shape[1])
    return torch.bmm(weights, values).view(heads, rows, dim).transpose(0, 1).reshape(rows, heads * dim)


def _bias(visible: torch.Tensor, known: int) -> torch.Tensor:
    """[n, known + n] float32: 0 where a row sees, -inf where not; all of the context is seen."""
    seen = torch.cat([visible.new_ones(visible.shape[0], known), visible], dim=1)
    return torch.zeros(seen.shape, device=seen.device).masked_fill_(~seen, -torch.inf)


def _joined(context: KeysValues, own: KeysValues) -> KeysValues:
    return torch.cat([context[0], own[0]], dim=1), torch.cat([context[1], own[1]], dim=1)


def _norm(hidden: torch.Tensor, weight: torch.Tensor, shape: Qwen2Shape) -> torch.Tensor:
    return torch.nn.functional.rms_norm(hidden, (shape.hidden,), weight, shape.norm_epsilon)
