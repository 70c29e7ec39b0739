"""The `tiny` family: random weights of the Qwen2 shape over bytes, for tests and demos without a download.

Owns nothing but the dice. Everything behind the weights is the hybrid family's own code.
"""

from __future__ import annotations

from itertools import product

import torch

from engine.diffusion.confidence import MaskConfidence
from engine.models.adapter import LowRank
from engine.models.base import ModelFacts
from engine.models.hybrid import MASK_ID, HybridDenoiser, HybridWeights
from engine.models.network import LayerWeights, Stack
from engine.models.shape import PARTS, Qwen2Shape
from engine.protocol.errors import EngineError
from engine.runtime.embedding import FloatEmbedding
from engine.runtime.linear import FloatLinear, Linear, int8_linear, quantise_per_channel
from engine.tokenizer import ByteTokenizer

_WINDOW = 512
_HEADS = 4
_RANK = 4


def tiny_denoiser(
    seed: int = 0, *, layers: int = 2, hidden: int = 32, precision: str = "fp32", window_tokens: int = _WINDOW
) -> HybridDenoiser:
    """A random model with a random adapter, equal for equal arguments. hidden: a multiple of 8.

    precision: "fp32", or "int8" where the build has it. Raises EngineError(model_unsupported) for another one.
    """
    if precision not in {"fp32", "int8"}:
        raise EngineError("model_unsupported", f"tiny has no precision {precision!r}", "use fp32 or int8")
    generator = torch.Generator().manual_seed(seed)
    shape = tiny_shape(layers, hidden, window_tokens)
    weights = random_weights(shape, generator, precision)
    tokenizer = ByteTokenizer()
    facts = ModelFacts(
        name="tiny",
        family="tiny",
        device="cpu",
        precision=precision,
        adapter=f"random-{seed}",
        vocab_size=shape.vocab,
        window_tokens=window_tokens,
        mask_id=MASK_ID,
        confidence=MaskConfidence(gains=(1.0, 1.0, 1.0)),
        special=tokenizer.special_ids(),
    )
    return HybridDenoiser(weights, tokenizer, facts)


def tiny_shape(layers: int = 2, hidden: int = 32, window_tokens: int = _WINDOW) -> Qwen2Shape:
    """Four heads on two key-value heads, a vocabulary of bytes and special ids."""
    return Qwen2Shape(
        layers=layers,
        hidden=hidden,
        heads=_HEADS,
        kv_heads=_HEADS // 2,
        head_dim=hidden // _HEADS,
        intermediate=3 * hidden,
        vocab=ByteTokenizer.vocab_size,
        trained_tokens=window_tokens,
        rope_theta=10_000.0,
        norm_epsilon=1e-6,
    )


def random_weights(shape: Qwen2Shape, generator: torch.Generator, precision: str = "fp32") -> HybridWeights:
    """Weights drawn in a fixed order, with a random adapter folded into the second stack."""
    matrices = [_random_matrices(shape, generator) for _ in range(shape.layers)]
    patches = random_patches(shape, generator)
    mask_embedding = _normal(generator, shape.hidden)
    biases = [_normal(generator, shape.part_size("qkv")[0]) * 0.1 for _ in range(shape.layers)]
    ones = torch.ones(shape.hidden)
    plain, adapted = [], []
    for index, (dense, bias) in enumerate(zip(matrices, biases, strict=True)):
        patched = {part: dense[part] + patches[index, part].dense() for part in PARTS}
        plain.append(_layer(ones, bias, dense, precision))
        adapted.append(_layer(ones, bias, patched, precision))
    return HybridWeights(
        shape=shape,
        embedding=FloatEmbedding(_normal(generator, shape.vocab, shape.hidden)),
        plain=Stack(tuple(plain), ones),
        head=_linear(_normal(generator, shape.vocab, shape.hidden) * 0.3, precision),
        adapted=Stack(tuple(adapted), ones),
        mask_embedding=mask_embedding,
    )


def random_patches(shape: Qwen2Shape, generator: torch.Generator) -> dict[tuple[int, str], LowRank]:
    """By (layer, part); about a third as large as the weights, so that their effect shows."""
    patches = {}
    for layer, part in product(range(shape.layers), PARTS):
        rows, columns = shape.part_size(part)
        down = _normal(generator, _RANK, columns) / columns**0.5
        patches[layer, part] = LowRank(down, _normal(generator, rows, _RANK) * 0.2)
    return patches


def _random_matrices(shape: Qwen2Shape, generator: torch.Generator) -> dict[str, torch.Tensor]:
    sizes = {part: shape.part_size(part) for part in PARTS}
    return {part: _normal(generator, *size) / size[1] ** 0.5 for part, size in sizes.items()}


def _layer(ones: torch.Tensor, bias: torch.Tensor, dense: dict[str, torch.Tensor], precision: str) -> LayerWeights:
    parts = {part: _linear(dense[part], precision) for part in PARTS}
    return LayerWeights(ones, ones, bias, **parts)


def _linear(weight: torch.Tensor, precision: str) -> Linear:
    return FloatLinear(weight) if precision == "fp32" else int8_linear(*quantise_per_channel(weight))


def _normal(generator: torch.Generator, *size: int) -> torch.Tensor:
    return torch.randn(size, generator=generator)
