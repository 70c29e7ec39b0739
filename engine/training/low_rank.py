"""The trained part: low-rank terms beside every matrix of every layer (LoRA, Hu et al. 2021), and a mask embedding.

Owns the parameters and their names, which are those of the adapter file that `engine.models.adapter` reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from engine.models.adapter import PART_MODULES
from engine.models.shape import PARTS, Qwen2Shape

MASK_EMBEDDING = "mask_embedding"


class LowRankTerms:
    """`parameters` by name: `layers.I.MODULE.lora_A` [rank, in], `.lora_B` [out, rank], `mask_embedding` [hidden]."""

    def __init__(self, shape: Qwen2Shape, parameters: Mapping[str, torch.Tensor]) -> None:
        self.shape = shape
        self.parameters = {name: tensor.float().clone().requires_grad_() for name, tensor in parameters.items()}

    @property
    def mask_embedding(self) -> torch.Tensor:
        return self.parameters[MASK_EMBEDDING]

    def apply(self, layer: int, part: str, x: torch.Tensor) -> torch.Tensor:
        """What the low-rank terms add to one fused matrix's product. x: [n, in]; returns [n, out]."""
        names = [f"layers.{layer}.{module}" for module in PART_MODULES[part]]
        downs = [self.parameters[f"{name}.lora_A"] for name in names]
        ups = [self.parameters[f"{name}.lora_B"] for name in names]
        inner = torch.nn.functional.linear(x, torch.cat(downs) if len(downs) > 1 else downs[0])
        pieces = torch.split(inner, [down.shape[0] for down in downs], dim=-1)
        terms = [torch.nn.functional.linear(piece, up) for piece, up in zip(pieces, ups, strict=True)]
        return torch.cat(terms, dim=-1) if len(terms) > 1 else terms[0]

    def count(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters.values())


def fresh_parameters(
    shape: Qwen2Shape, rank: int, mask_embedding: torch.Tensor, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Terms that add nothing yet: A random with variance 1/in, B zero. mask_embedding: [hidden], where masks start."""
    parameters = {MASK_EMBEDDING: mask_embedding.float().clone()}
    for layer in range(shape.layers):
        for part in PARTS:
            columns = shape.part_size(part)[1]
            for module, rows in zip(PART_MODULES[part], module_rows(shape, part), strict=True):
                name = f"layers.{layer}.{module}"
                parameters[f"{name}.lora_A"] = torch.randn(rank, columns, generator=generator) / math.sqrt(columns)
                parameters[f"{name}.lora_B"] = torch.zeros(rows, rank)
    return parameters


def module_rows(shape: Qwen2Shape, part: str) -> tuple[int, ...]:
    """Output widths of the modules fused in one of `PARTS`."""
    return {
        "qkv": (shape.query_width, shape.kv_width, shape.kv_width),
        "output": (shape.hidden,),
        "gate_up": (shape.intermediate, shape.intermediate),
        "down": (shape.hidden,),
    }[part]
