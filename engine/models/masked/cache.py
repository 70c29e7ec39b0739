"""The dual cache: keys and values of the known text on both sides, held once, with the rows of a step behind them.

Keys are stored after the rotation that gives them their place, and attention without a causal mask does not ask for an
order. So prefix and suffix lie side by side in one preallocated buffer, a step writes its rows behind them, and nothing
is concatenated (the idea of Fast-dLLM's dual cache, Wu et al. 2025, arXiv 2505.22618). When a canvas grows or shrinks,
the suffix moves: its keys are turned by the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from engine.runtime.cache import CacheShape

_GROWTH = 64


@dataclass(slots=True)
class _Extent:
    """held: places of known text in front. rows: of the batch of the running step. Shared by all layers."""

    held: int = 0
    rows: int = 1


class DualCache(Cache):
    """Buffers of [rows, kv_heads, places, head_dim] per layer, grown in steps up to the window.

    The first `held` places are known text; a forward pass writes behind them and sees everything up to its own end.
    What it wrote becomes known text by `keep`, and is overwritten by the next pass else.
    """

    def __init__(self, shape: CacheShape) -> None:
        self._shape = shape
        self._extent = _Extent()
        self._copied: list[int] = [0]  # how much of the known text each row of the batch has
        self._buffers = [_Layer(self._extent) for _ in range(shape.layers)]
        super().__init__(layers=list(self._buffers))
        self._allocate(1, 0)

    @property
    def held(self) -> int:
        """Places of known text."""
        return self._extent.held

    @property
    def places_in_memory(self) -> tuple[int, ...]:
        """Where a pass reads and writes, as prepared: places held, rows, and the address of each layer's keys."""
        return (self._extent.held, self._extent.rows, *(layer.address for layer in self._buffers))

    def prepare(self, rows: int, places: int) -> None:
        """Make room for a pass of `rows` x `places` behind the known text, which the rows share so far.

        A row that lacks some of the known text gets it copied from the first one: once, not per step.
        """
        needed = self._extent.held + places
        have_rows, have_places = self._buffers[0].room
        if rows > have_rows or needed > have_places:
            self._allocate(max(rows, have_rows), max(needed, have_places))
        held = self._extent.held
        self._copied += [0] * (rows - len(self._copied))
        for row in range(1, rows):
            start = self._copied[row]
            if start < held:
                for layer in self._buffers:
                    layer.copy_row(row, start, held)
            self._copied[row] = max(start, held)
        self._extent.rows = rows

    def append(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the pass's rows see in one layer, their own keys and values [rows, kv_heads, n, head_dim] included."""
        return self._buffers[layer].update(keys, values)

    def keep(self, places: int) -> None:
        """The first `places` places written by the last pass become known text, each row with its own."""
        self._extent.held += places
        for row in range(self._extent.rows):
            self._copied[row] = self._extent.held
        del self._copied[self._extent.rows :]

    def keep_shared(self, places: int) -> None:
        """Like `keep`, of a pass of one row: the other rows of a batch get it copied when they are next in use."""
        self._extent.held += places
        self._copied[0] = self._extent.held

    def truncate(self, places: int) -> None:
        """Forget known text from `places` on. Raises ValueError if less is held."""
        if not 0 <= places <= self._extent.held:
            raise ValueError(f"cannot truncate {self._extent.held} places to {places}")
        self._extent.held = places
        self._copied = [min(copied, places) for copied in self._copied]

    def turn(self, row: int, start: int, end: int, cos: torch.Tensor, sin: torch.Tensor) -> None:
        """Turn the keys of places `[start, end)` of a row by one angle per pair: cos, sin [head_dim] float32."""
        for layer in self._buffers:
            layer.turn(row, start, end, cos, sin)

    def _allocate(self, rows: int, places: int) -> None:
        capacity = min(-(-max(places, 1) // _GROWTH) * _GROWTH, max(self._shape.window_tokens, places))
        for layer in self._buffers:
            layer.allocate(self._shape, rows, capacity)


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer's buffers, behind the interface of a transformers cache layer."""

    is_sliding = False

    def __init__(self, extent: _Extent) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._extent = extent
        self.is_initialized = True

    @property
    def room(self) -> tuple[int, int]:
        """(rows, places) allocated."""
        keys = self._stored(self.keys)
        return keys.shape[0], keys.shape[2]

    @property
    def address(self) -> int:
        """Of the keys; the values were allocated with them."""
        return self._stored(self.keys).data_ptr()

    def allocate(self, shape: CacheShape, rows: int, places: int) -> None:
        size = (rows, shape.kv_heads, places, shape.head_dim)
        held = self._extent.held
        fresh = [torch.zeros(size, dtype=shape.dtype, device=shape.device) for _ in range(2)]
        if self.keys is not None:
            for new, old in zip(fresh, (self._stored(self.keys), self._stored(self.values)), strict=True):
                new[: old.shape[0], :, :held] = old[:, :, :held]
        self.keys, self.values = fresh

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        start = self._extent.held
        rows, end = key_states.shape[0], start + key_states.shape[2]
        keys, values = self._stored(self.keys), self._stored(self.values)
        keys[:rows, :, start:end] = key_states
        values[:rows, :, start:end] = value_states
        return keys[:rows, :, :end], values[:rows, :, :end]

    def copy_row(self, row: int, start: int, end: int) -> None:
        for buffer in (self._stored(self.keys), self._stored(self.values)):
            buffer[row, :, start:end] = buffer[0, :, start:end]

    def turn(self, row: int, start: int, end: int, cos: torch.Tensor, sin: torch.Tensor) -> None:
        """Rotate-half convention, in float32: turning adds to the angle a key already has (Su et al. 2021)."""
        part = self._stored(self.keys)[row, :, start:end]
        left, right = part.float().chunk(2, dim=-1)
        turned = torch.cat((left, right), dim=-1) * cos + torch.cat((-right, left), dim=-1) * sin
        part.copy_(turned.to(part.dtype))

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the cache allocates."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._extent.held + query_length, 0

    def get_seq_length(self) -> int:
        return self._extent.held

    def get_max_length(self) -> int:
        return -1

    @staticmethod
    def _stored(buffer: torch.Tensor | None) -> torch.Tensor:
        if buffer is None:
            raise RuntimeError("a layer of the cache is used before it was allocated")
        return buffer
