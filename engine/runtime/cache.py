"""Keys and values resident between requests: the cache of one context, and the pool that reuses contexts.

Owns memory and prefix matching; computes nothing with a model. Not thread-safe, like the model it serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import torch

from engine.protocol.errors import EngineError
from engine.runtime.attention import BLOCK

_GROWTH = 2 * BLOCK
MOST_BYTES = 176 * 2**20
"""What resident contexts may take together unless something else is asked for: some seven of a thousand tokens on the
default model, which keeps 24 KiB for each."""
LOST_ROWS = 48
"""A context is cut for a request when it loses at most so many rows, and not more than it keeps."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a cache must hold: per layer, `kv_heads` vectors of `head_dim` for at most `window_tokens` rows."""

    layers: int
    kv_heads: int
    head_dim: int
    window_tokens: int
    dtype: torch.dtype
    device: torch.device


class KeyValueCache:
    """Keys and values of up to `window_tokens` rows, grown in steps.

    `length` rows are resident. The storage behind them is zero or stale, always finite.
    """

    def __init__(self, shape: CacheShape) -> None:
        self._shape = shape
        self._store = self._allocate(0)
        self.length = 0

    @property
    def capacity(self) -> int:
        """Rows that fit without growing; a multiple of `attention.BLOCK`."""
        return self._store.shape[3]

    @property
    def nbytes(self) -> int:
        """Bytes the storage takes, rows that are not resident included."""
        return self._store.nbytes

    def nbytes_for(self, rows: int) -> int:
        """Bytes the storage takes with room for `rows` rows."""
        shape = self._shape
        values = 2 * shape.layers * shape.kv_heads * shape.head_dim
        return values * self._capacity_for(rows) * shape.dtype.itemsize

    def reserve(self, rows: int) -> None:
        """Make room for `rows` more. Raises EngineError(window_exceeded) past the window; changes nothing then."""
        needed = self.length + rows
        if needed > self._shape.window_tokens:
            raise window_exceeded(needed, self._shape.window_tokens)
        if needed <= self.capacity:
            return
        grown = self._allocate(needed)
        grown[:, :, :, : self.length] = self._store[:, :, :, : self.length]
        self._store = grown

    def put(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Write [n, kv_heads, head_dim] keys and values behind the resident rows; `length` moves by `advance`."""
        end = self.length + keys.shape[0]
        self._store[layer, 0, :, self.length : end] = keys.transpose(0, 1)
        self._store[layer, 1, :, self.length : end] = values.transpose(0, 1)

    def advance(self, rows: int) -> None:
        """Make the rows just put into every layer resident."""
        self.length += rows

    def padded(self, rows: int) -> int:
        """`length + rows` rounded up to whole blocks."""
        return _whole_blocks(self.length + rows)

    @property
    def storage(self) -> torch.Tensor:
        """All of it, [layers, 2, kv_heads, capacity, head_dim], for a kernel that fills and reads it where it lies."""
        return self._store

    def view(self, layer: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The first `positions` keys and values of a layer: each [kv_heads, positions, head_dim]."""
        keys, values = self._store[layer, :, :, :positions].unbind(0)
        return keys, values

    def truncate(self, length: int) -> None:
        """Forget rows from `length` on. Raises ValueError if fewer are resident."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} resident rows to {length}")
        self.length = length

    def copy_prefix(self, source: KeyValueCache, length: int) -> None:
        """Replace the content by the first `length` rows of `source`."""
        self.length = 0
        self.reserve(length)
        self._store[:, :, :, :length] = source._store[:, :, :, :length]
        self.length = length

    def _allocate(self, rows: int) -> torch.Tensor:
        shape = self._shape
        size = (shape.layers, 2, shape.kv_heads, self._capacity_for(rows), shape.head_dim)
        return torch.zeros(size, dtype=shape.dtype, device=shape.device)

    def _capacity_for(self, rows: int) -> int:
        return min(-(-rows // _GROWTH) * _GROWTH, _whole_blocks(self._shape.window_tokens))


class CachedContext:
    """A `Context`: a key-value cache that also remembers which ids its leading, unadapted rows came from."""

    def __init__(self, shape: CacheShape) -> None:
        self.cache = KeyValueCache(shape)
        self._encoded: list[int] = []

    @property
    def length(self) -> int:
        return self.cache.length

    @property
    def encoded(self) -> Sequence[int]:
        """Ids of the leading rows that came from `encode`; only these may be matched as a prefix."""
        return self._encoded

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    def nbytes_for(self, rows: int) -> int:
        return self.cache.nbytes_for(rows)

    def truncate(self, length: int) -> None:
        self.cache.truncate(length)
        del self._encoded[length:]

    def remember(self, ids: Sequence[int]) -> None:
        """Note that the last `len(ids)` rows are `ids`, encoded. Rows behind a step's rows are not matchable."""
        if len(self._encoded) == self.cache.length - len(ids):
            self._encoded.extend(ids)

    def copy_prefix(self, source: CachedContext, length: int) -> None:
        """Become a copy of the first `length` (encoded) rows of `source`."""
        self.cache.copy_prefix(source.cache, length)
        self._encoded = list(source.encoded[:length])


class PooledContext(Protocol):
    """What the pool needs of a context: its rows' ids and bytes, cutting it, and copying another's rows."""

    @property
    def encoded(self) -> Sequence[int]: ...

    @property
    def nbytes(self) -> int:
        """Bytes it takes now."""
        ...

    def nbytes_for(self, rows: int) -> int:
        """Bytes it would take with `rows` rows."""
        ...

    def truncate(self, length: int) -> None: ...

    def copy_prefix(self, source: Self, length: int) -> None: ...


_Context = TypeVar("_Context", bound=PooledContext)


class ContextPool(Generic[_Context]):
    """Resident contexts; hands out the one that shares the longest prefix with a request. `make` makes an empty one.

    A context that would lose more (see `LOST_ROWS`) is not cut: the shared rows are copied into a new one, so that
    several places of a document and several documents keep their own contexts, and all of them share what they begin
    with. What has not been used for longest is let go while all together take more than `most_bytes`; the last used one
    stays whatever it takes. A context is in use from `context_for` to `release`; until then it is neither cut nor let
    go, only copied from, as jobs are interleaved.
    """

    def __init__(self, make: Callable[[], _Context], most_bytes: int = MOST_BYTES) -> None:
        if most_bytes < 0:
            raise ValueError(f"most_bytes must not be negative, got {most_bytes}")
        self._make = make
        self._most_bytes = most_bytes
        self._contexts: list[_Context] = []  # the least recently used first
        self._in_use: list[_Context] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all contexts, those in use included."""
        return sum(context.nbytes for context in self._contexts)

    def context_for(self, ids: Sequence[int]) -> _Context:
        """A context whose rows are exactly the longest resident prefix of `ids` (at most `len(ids)` rows)."""
        shared, donor = self._nearest(ids)
        if donor is not None and donor not in self._in_use and self._may_cut(donor, shared, len(ids)):
            chosen = donor
            chosen.truncate(shared)
        else:
            chosen = self._make()
            self._make_room(chosen.nbytes_for(len(ids)), sparing=donor)
            if donor is not None:
                chosen.copy_prefix(donor, shared)
        self._use(chosen)
        return chosen

    def spare_context_for(self, ids: Sequence[int]) -> _Context | None:
        """As `context_for`, for work nobody waits for: None when all of `ids` is resident or too little room is free.

        The contexts used last are neither cut nor let go for it, so that a wrong guess costs them nothing.
        """
        shared, donor = self._nearest(ids)
        if shared == len(ids):
            return None
        if donor is not None and donor not in self._in_use and shared == len(donor.encoded):
            self._use(donor)
            return donor
        chosen = self._make()
        needed = chosen.nbytes_for(len(ids)) + sum(recent.nbytes for recent in self._contexts[-2:])
        if needed > self._most_bytes:
            return None
        self._make_room(chosen.nbytes_for(len(ids)), sparing=donor)
        if donor is not None:
            chosen.copy_prefix(donor, shared)
        self._use(chosen)
        return chosen

    def release(self, context: _Context) -> None:
        """Give a context back: its encoded rows stay, as far as there is room for them."""
        self._in_use = [used for used in self._in_use if used is not context]
        context.truncate(len(context.encoded))
        self._make_room(0, sparing=self._contexts[-1] if self._contexts else None)

    def _nearest(self, ids: Sequence[int]) -> tuple[int, _Context | None]:
        """The context with the longest common prefix, and its length; the most recently used one wins a tie."""
        matches = [(common_prefix(context.encoded, ids), context) for context in reversed(self._contexts)]
        shared, donor = max(matches, key=lambda match: match[0], default=(0, None))
        return (shared, donor) if shared else (0, None)

    def _may_cut(self, context: _Context, kept: int, rows: int) -> bool:
        """Whether to cut `context` to `kept` rows: little is lost, or there is no room for both."""
        together = context.nbytes + context.nbytes_for(rows)
        lost = len(context.encoded) - kept
        return lost <= min(LOST_ROWS, kept) or together > self._most_bytes

    def _use(self, context: _Context) -> None:
        self._contexts = [known for known in self._contexts if known is not context] + [context]
        self._in_use.append(context)

    def _make_room(self, needed: int, sparing: _Context | None) -> None:
        """Let go what was not used for longest until `needed` more bytes fit, or nothing else may go."""
        held = self.nbytes + needed
        for context in list(self._contexts):
            if held <= self._most_bytes:
                return
            if context is not sparing and context not in self._in_use:
                self._contexts.remove(context)
                held -= context.nbytes


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading elements are equal."""
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length


def window_exceeded(needed: int, window_tokens: int) -> EngineError:
    """The error for a request that does not fit the model's window."""
    return EngineError(
        "window_exceeded",
        f"the request needs {needed} tokens and the model's window holds {window_tokens}",
        "select less text, shorten the instruction, or load the model with a larger window",
    )


def _whole_blocks(rows: int) -> int:
    return -(-rows // BLOCK) * BLOCK
