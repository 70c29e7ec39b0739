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

_GROWTH = 4 * BLOCK


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
        steps = -(-rows // _GROWTH)
        capacity = min(steps * _GROWTH, _whole_blocks(shape.window_tokens))
        size = (shape.layers, 2, shape.kv_heads, capacity, shape.head_dim)
        return torch.zeros(size, dtype=shape.dtype, device=shape.device)


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
    """What the pool needs of a context: which ids its rows came from, cutting it, and copying another's rows."""

    @property
    def encoded(self) -> Sequence[int]: ...

    def truncate(self, length: int) -> None: ...

    def copy_prefix(self, source: Self, length: int) -> None: ...


_Context = TypeVar("_Context", bound=PooledContext)


class ContextPool(Generic[_Context]):
    """A few resident contexts; hands out the one that shares the longest prefix with a request. `make` makes a new one.

    A context that would lose more than it keeps is not cut: its prefix is copied into the least recently used
    one instead, so that two files edited in turn keep their own contexts. A context is in use from `context_for` to
    `release`; until then it is neither cut nor recycled, only copied from, as jobs are interleaved.
    """

    def __init__(self, make: Callable[[], _Context], size: int = 3) -> None:
        if size < 2:
            raise ValueError("a pool needs at least two contexts")
        self._make = make
        self._size = size
        self._contexts: list[_Context] = []  # the least recently used first
        self._in_use: list[_Context] = []

    def context_for(self, ids: Sequence[int]) -> _Context:
        """A context whose rows are exactly the longest resident prefix of `ids` (at most `len(ids)` rows)."""
        matches = [(common_prefix(context.encoded, ids), context) for context in self._contexts]
        # The most recently used wins a tie.
        shared, donor = max(reversed(matches), key=lambda match: match[0], default=(0, None))
        if donor is not None and donor not in self._in_use and 2 * shared >= len(donor.encoded):
            chosen = donor
            chosen.truncate(shared)
        else:
            chosen = self._recycled()
            if donor is not None and donor is not chosen:
                chosen.copy_prefix(donor, shared)
            else:
                chosen.truncate(shared)
        self._contexts = [context for context in self._contexts if context is not chosen] + [chosen]
        self._in_use.append(chosen)
        return chosen

    def release(self, context: _Context) -> None:
        """Give a context back: its encoded rows stay. Contexts made beyond the pool's size are let go."""
        self._in_use = [used for used in self._in_use if used is not context]
        context.truncate(len(context.encoded))
        spare = len(self._contexts) - self._size
        for idle in [known for known in self._contexts if known not in self._in_use][: max(0, spare)]:
            self._contexts.remove(idle)

    def _recycled(self) -> _Context:
        idle = [context for context in self._contexts if context not in self._in_use]
        return idle[0] if idle and len(self._contexts) >= self._size else self._make()


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
