"""Keys and values of the encoder, resident between requests, in the form transformers' layers read and write.

Storage is allocated ahead: encoding writes behind the resident rows, and a canvas writes its own rows behind those in
every step without copying the prefix. Sliding layers keep all rows, so that a context can be cut anywhere; what of them
a layer sees is a slice. Computes nothing with a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

_GROWTH = 512  # rows


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Keys and values of one layer. window: how many rows a row of a sliding layer sees, itself included; 0 for all."""

    kv_heads: int
    head_dim: int
    window: int


@dataclass(frozen=True, slots=True)
class ResidentShape:
    """What a cache holds, layer by layer."""

    layers: tuple[LayerShape, ...]
    dtype: torch.dtype
    device: torch.device

    def bytes_of(self, rows: int) -> int:
        """Bytes that a cache with room for `rows` rows takes."""
        values = sum(2 * layer.kv_heads * layer.head_dim for layer in self.layers)
        return values * _capacity_for(rows) * self.dtype.itemsize


class ResidentLayer(CacheLayerMixin):
    """One layer's rows. `keys` and `values`: [1, kv_heads, visible, head_dim], what the next row sees of the past."""

    is_compileable = False
    supports_early_init = False

    def __init__(self, shape: LayerShape, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_sliding = shape.window > 0
        self.is_initialized = True
        self._shape = shape
        self._store = torch.zeros((2, 1, shape.kv_heads, 0, shape.head_dim), dtype=dtype, device=device)
        self._length = 0
        self._show()

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows behind the resident ones."""
        needed = self._length + rows
        if needed <= self._store.shape[3]:
            return
        kept = self._store[:, :, :, : self._length]
        size = (2, 1, self._shape.kv_heads, _capacity_for(needed), self._shape.head_dim)
        self._store = kept.new_zeros(size)
        self._store[:, :, :, : self._length] = kept
        self._show()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [1, kv_heads, n, head_dim] rows and return all rows that any of them sees, themselves included."""
        seen = self._with(key_states, value_states)
        self._length += key_states.shape[2]
        self._show()
        return seen

    def with_canvas(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What a canvas of [1, kv_heads, n, head_dim] rows sees: the past and itself. Nothing becomes resident."""
        return self._with(keys, values)

    @property
    def store(self) -> torch.Tensor:
        """Keys and values, [2, 1, kv_heads, capacity, head_dim]."""
        return self._store

    @property
    def visible(self) -> int:
        """How many resident rows the next row sees."""
        return self._length - self._first_visible()

    def truncate(self, length: int) -> None:
        """Forget rows from `length` on."""
        self._length = length
        self._show()

    def copy_prefix(self, source: ResidentLayer, length: int) -> None:
        """Replace the content by the first `length` rows of `source`."""
        self._length = 0
        self.reserve(length)
        self._store[:, :, :, :length] = source._store[:, :, :, :length]
        self.truncate(length)

    def get_seq_length(self) -> int:
        return self._length

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many rows `update` will return for `query_length` new ones, and the position of the first of them."""
        start = self._first_visible()
        return self._length - start + query_length, start

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Storage is there from the start."""

    def _with(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        end = self._length + keys.shape[2]
        if end > self._store.shape[3]:
            raise ValueError(f"{end} rows do not fit into storage for {self._store.shape[3]}: reserve them first")
        self._store[0, :, :, self._length : end] = keys
        self._store[1, :, :, self._length : end] = values
        start = self._first_visible()
        return self._store[0, :, :, start:end], self._store[1, :, :, start:end]

    def _first_visible(self) -> int:
        return max(0, self._length - self._shape.window + 1) if self.is_sliding else 0

    def _show(self) -> None:
        self.keys, self.values = self._store[:, :, :, self._first_visible() : self._length].unbind(0)


class ResidentCache(Cache):
    """The rows of all layers. Not thread-safe."""

    def __init__(self, shape: ResidentShape) -> None:
        self._layers = [ResidentLayer(layer, shape.dtype, shape.device) for layer in shape.layers]
        super().__init__(layers=[*self._layers])

    @property
    def length(self) -> int:
        """Resident rows."""
        return self._layers[0].get_seq_length()

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows behind the resident ones, in every layer."""
        for layer in self._layers:
            layer.reserve(rows)

    def with_canvas(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What a canvas sees in `layer`; see `ResidentLayer.with_canvas`."""
        return self._layers[layer].with_canvas(keys, values)

    @property
    def stores(self) -> tuple[torch.Tensor, ...]:
        """The storage of each layer: [2, 1, kv_heads, capacity, head_dim], keys and values."""
        return tuple(layer.store for layer in self._layers)

    def visible(self, layer: int) -> int:
        """How many resident rows a canvas sees in `layer`."""
        return self._layers[layer].visible

    def truncate(self, length: int) -> None:
        """Forget rows from `length` on, also those a forward pass that failed left in some layers only."""
        for layer in self._layers:
            layer.truncate(length)

    def copy_prefix(self, source: ResidentCache, length: int) -> None:
        """Replace the content by the first `length` rows of `source`."""
        for mine, its in zip(self._layers, source._layers, strict=True):
            mine.copy_prefix(its, length)


class GemmaContext:
    """A `CanvasContext`: a resident cache and the ids its rows came from.

    unread: known text that is still to be encoded. Rows behind those of the known text are of this context's job only.
    """

    def __init__(self, shape: ResidentShape) -> None:
        self.cache = ResidentCache(shape)
        self.cached = 0
        self.unread: tuple[int, ...] = ()
        self._shape = shape
        self._encoded: list[int] = []
        self._borders: list[int] = []

    @property
    def borders(self) -> Sequence[int]:
        """Where the passes ended in which the rows of the known text were computed, ascending."""
        return self._borders

    @property
    def encoded(self) -> Sequence[int]:
        """The ids of the known text's rows, which another request may use."""
        return self._encoded

    @property
    def nbytes(self) -> int:
        """Bytes of all layers' storage."""
        return sum(store.nbytes for store in self.cache.stores)

    def nbytes_for(self, rows: int) -> int:
        """Bytes the storage takes with room for `rows` rows."""
        return self._shape.bytes_of(rows)

    def remember(self, ids: Sequence[int]) -> None:
        """Note that `ids` have just become resident, in one pass."""
        self._encoded.extend(ids)
        self._borders.append(len(self._encoded))

    def truncate(self, length: int) -> None:
        """Forget rows from `length` on. Raises ValueError if fewer are resident."""
        if not 0 <= length <= len(self._encoded):
            raise ValueError(f"cannot truncate {len(self._encoded)} resident rows to {length}")
        self.cache.truncate(length)
        del self._encoded[length:]
        self._borders = [border for border in self._borders if border <= length]

    def copy_prefix(self, source: GemmaContext, length: int) -> None:
        """Become a copy of the first `length` rows of `source`."""
        self.cache.copy_prefix(source.cache, length)
        self._encoded = list(source.encoded[:length])
        self._borders = [border for border in source.borders if border <= length]


def _capacity_for(rows: int) -> int:
    return -(-rows // _GROWTH) * _GROWTH
