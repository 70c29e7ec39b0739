"""Keys and values of several jobs side by side for one forward pass: each row of the batch sees its own job's only.

What a row sees has its own length, so the rows are padded behind, and a mask hides what pads them. Every step copies
what it sees; on a machine where a wider pass is nearly free that is a small part of it (a row's keys and values are
read once more and written once).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import pad
from transformers.cache_utils import Cache, CacheLayerMixin

Pair = tuple[torch.Tensor, torch.Tensor]
Append = Callable[[int, torch.Tensor, torch.Tensor], Pair]
"""(layer, keys, values) of a job's own rows, each [rows, kv_heads, n, head_dim], to all that these rows see."""


class JointCache(Cache):
    """Several jobs' caches as one.

    appends: of each job, in the order of the rows. rows: how many rows of the batch are the job's, and how many places
    of each row count; what stands behind them is padding. Not thread-safe; for one pass.
    """

    def __init__(self, layers: int, appends: Sequence[Append], rows: Sequence[tuple[int, int]]) -> None:
        self._joint = [_JointLayer(layer, appends, rows) for layer in range(layers)]
        super().__init__(layers=[*self._joint])

    def with_canvas(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> Pair:
        """What the rows see in `layer`, for attention that writes nowhere else."""
        return self._joint[layer].update(keys, values)


class _JointLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer of all jobs."""

    is_sliding = False

    def __init__(self, layer: int, appends: Sequence[Append], rows: Sequence[tuple[int, int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_initialized = True
        self._layer = layer
        self._appends = appends
        self._rows = rows

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any) -> Pair:
        """[rows, kv_heads, n, head_dim] of all jobs to [rows, kv_heads, most that a row sees, head_dim]."""
        seen: list[Pair] = []
        start = 0
        for append, (rows, places) in zip(self._appends, self._rows, strict=True):
            own = slice(start, start + rows)
            seen.append(append(self._layer, key_states[own, :, :places], value_states[own, :, :places]))
            start += rows
        most = max(keys.shape[2] for keys, _ in seen)
        return _stacked([keys for keys, _ in seen], most), _stacked([values for _, values in seen], most)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the jobs' own caches allocate."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return query_length, 0

    def get_seq_length(self) -> int:
        return 0

    def get_max_length(self) -> int:
        return -1


def _stacked(parts: Sequence[torch.Tensor], most: int) -> torch.Tensor:
    return torch.cat([pad(part, (0, 0, 0, most - part.shape[2])) for part in parts])


def stacked_masks(masks: Sequence[torch.Tensor], places: int, most: int) -> torch.Tensor:
    """[rows, 1, places, most] bool of each job's mask [rows, 1, own places, own most]; nothing sees what pads it.

    A padding row sees one place, whichever: a row that saw none would be no number.
    """
    padded = []
    for mask in masks:
        wide = pad(mask, (0, most - mask.shape[3], 0, places - mask.shape[2]), value=False)
        wide[:, :, mask.shape[2] :, 0] = True
        padded.append(wide)
    return torch.cat(padded)
