"""Grouped-query attention of a few new rows over a padded key-value cache, and rotary positions.

Owns the arithmetic only; the cache's layout is `cache.KeyValueCache`'s. On the CPU the sum over positions runs in
blocks of fixed size from position 0, so that neither the number of rows nor the length of the cache changes the
order in which a row's terms are added: checking a wide draft gives what single steps give.
"""

from __future__ import annotations

import torch

BLOCK = 128
"""Positions per block; the capacity of a cache is a multiple of it."""


def attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor, scale: float
) -> torch.Tensor:
    """softmax(scale * Q K^T + bias) V for grouped queries.

    query: [n, heads, d]. keys, values: [kv_heads, positions, d], finite everywhere, positions a multiple of
    `BLOCK`. bias: [n, positions] float32, 0 where a row sees a position and -inf elsewhere; each row sees at
    least one. Returns [n, heads * d] float32.
    """
    if keys.device.type == "cpu" and keys.dtype == torch.float32:
        return _attend_in_blocks(query, keys, values, bias, scale)
    return _attend_fused(query, keys, values, bias, scale)


def _attend_in_blocks(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor, scale: float
) -> torch.Tensor:
    rows, heads, dim = query.shape
    groups, positions, _ = keys.shape
    per_group = heads // groups
    grouped = query.view(rows, groups, per_group, dim).permute(1, 2, 0, 3).reshape(groups, -1, dim)
    scores = torch.bmm(grouped * scale, keys.transpose(1, 2)).view(groups, per_group, rows, positions)
    weights = scores.add_(bias).softmax(-1).view(groups, -1, positions)
    mixed = torch.bmm(weights[:, :, :BLOCK], values[:, :BLOCK])
    for start in range(BLOCK, positions, BLOCK):
        mixed.baddbmm_(weights[:, :, start : start + BLOCK], values[:, start : start + BLOCK])
    return mixed.view(groups, per_group, rows, dim).permute(2, 0, 1, 3).reshape(rows, heads * dim)


def _attend_fused(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor, scale: float
) -> torch.Tensor:
    mixed = torch.nn.functional.scaled_dot_product_attention(
        query.to(keys.dtype).transpose(0, 1)[None],
        keys[None],
        values[None],
        attn_mask=bias.to(keys.dtype)[None, None],
        scale=scale,
        enable_gqa=True,
    )
    return mixed[0].transpose(0, 1).reshape(query.shape[0], -1).float()


class RotaryTable:
    """Rotary position embedding (Su et al. 2021) in the half-split layout of Qwen2, as a table of angles."""

    def __init__(self, dim: int, theta: float, positions: int, device: torch.device) -> None:
        inverse = 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        angles = torch.arange(positions, dtype=torch.float32)[:, None] * inverse
        self._cosine = angles.cos().to(device)
        self._sine = angles.sin().to(device)

    def angles(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the angles at `positions` (int64 [n], below the table's length): each [n, dim / 2]."""
        return self._cosine[positions], self._sine[positions]

    def rotate(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x: [n, heads, dim] float32; positions: [n] int64, below the table's length. Returns a new tensor."""
        cosine, sine = (rows[:, None] for rows in self.angles(positions))
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
