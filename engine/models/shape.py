"""The numbers that make a network of the Qwen2 shape: `Qwen2Shape`. Owns their meaning, not where they are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass

PARTS = ("qkv", "output", "gate_up", "down")
"""The fused matrices of a layer, in the order they are applied."""


@dataclass(frozen=True, slots=True)
class Qwen2Shape:
    """Dimensions of a pre-norm decoder with grouped-query attention, rotary positions and a gated MLP."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    trained_tokens: int
    rope_theta: float
    norm_epsilon: float

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    def part_size(self, part: str) -> tuple[int, int]:
        """(out, in) of one of `PARTS`."""
        return {
            "qkv": (self.query_width + 2 * self.kv_width, self.hidden),
            "output": (self.hidden, self.query_width),
            "gate_up": (2 * self.intermediate, self.hidden),
            "down": (self.hidden, self.intermediate),
        }[part]

    def to_json(self) -> dict[str, int | float]:
        return asdict(self)
