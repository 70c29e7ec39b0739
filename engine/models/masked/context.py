"""Known text of a masked family as it is kept between steps and requests: `MaskedContext` and the pool of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.models.masked.cache import DualCache
from engine.runtime.cache import CacheShape, common_prefix

_IDLE = 3


@dataclass(slots=True)
class Resident:
    """A cache and what its known text is, as far as another request may use it.

    encoded: ids whose keys and values the cache holds exactly, from its start (block-causal families only).
    """

    cache: DualCache
    encoded: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MaskedContext:
    """A `CanvasContext`. prefix, suffix: the known ids, with what the layout puts around them by itself.

    lead: how many of the prefix's last ids run with the canvas in every step, because the canvas is predicted from
        them (shift) or shares a block with them.
    lengths: of the canvases for which keys and values of both sides were computed, in the order of the step; None when
        they never were, or the text has changed since.
    cached: tokens of the known text that were resident when the context was opened.
    """

    resident: Resident
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    lead: int
    cached: int = 0
    lengths: list[int] | None = None
    is_open: bool = True


class ResidentPool:
    """A few caches that stay between requests; hands out the one that already holds most of a text."""

    def __init__(self, shape: CacheShape) -> None:
        self._shape = shape
        self._idle: list[Resident] = []  # the least recently used first

    def take(self, ids: Sequence[int]) -> Resident:
        """A cache for a text; what it holds of another one behind the common beginning is not cut off yet."""

        def worth(resident: Resident) -> int:
            """Places that would be kept, or -1 if more would be lost: that one is another file's."""
            shared = common_prefix(resident.encoded, ids)
            return shared if 2 * shared >= len(resident.encoded) else -1

        fitting = [resident for resident in self._idle if worth(resident) >= 0]
        if fitting or len(self._idle) >= _IDLE:
            chosen = max(reversed(fitting), key=worth) if fitting else self._idle[0]
            self._idle = [resident for resident in self._idle if resident is not chosen]
            return chosen
        return Resident(DualCache(self._shape))

    def give_back(self, resident: Resident) -> None:
        """Keep a cache for later; the one used least recently goes when there are too many."""
        self._idle = [*self._idle, resident][-_IDLE:]
