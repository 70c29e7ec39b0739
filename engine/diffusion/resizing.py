"""Holes that find their length while they are denoised: the expand and delete tokens of DreamOn (DreamLM 2025).

A place that becomes `expand` turns into two masks; one that becomes `delete` goes away, and with it every mask to its
right in the same hole: the family was taught that what follows a deleted place is deleted too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.models.canvas_model import CanvasFacts

WINDOW = 64
"""Most places of a hole, as DreamOn was trained and is run; a longer warm start keeps its own length."""


class Resizer:
    """Of one canvas. Two canvases that turn into each other for ever are broken by remembering the states seen."""

    def __init__(self, facts: CanvasFacts, most: int) -> None:
        self.ids = frozenset(token for token in (facts.expand_id, facts.delete_id) if token >= 0)
        self._expand = facts.expand_id
        self._delete = facts.delete_id
        self._most = most
        self._seen: set[tuple[tuple[int, bool], ...]] = set()
        self.frozen = False
        """Whether the size is final: no more expanding and deleting."""

    def restrict(self, logits: torch.Tensor, holes: torch.Tensor, hole_of: torch.Tensor) -> None:
        """Forbid in place what the size does not allow. logits: [m, vocab] of places of `holes` ([m] int64).

        hole_of: [n] int64, the hole of every place, on the host like `holes`.
        """
        if self.frozen:
            logits[:, sorted(self.ids)] = -torch.inf
        elif self._expand >= 0:
            size = (holes[:, None] == hole_of[None, :]).sum(dim=-1)
            logits[:, self._expand].masked_fill_((size >= self._most).to(logits.device), -torch.inf)

    def rearranged(
        self, ids: Sequence[int], free: Sequence[bool], holes: Sequence[int]
    ) -> list[tuple[int, bool]] | None:
        """The places of the next canvas, each as (old place, whether it is a mask now); None when nothing moves.

        ids: what stands there, an accepted expand or delete included. free: whether the place is still a mask.
        """
        state = tuple(zip(ids, free, strict=True))
        self.frozen = self.frozen or state in self._seen
        self._seen.add(state)
        moving = [
            hole >= 0 and not mask and token in self.ids for token, mask, hole in zip(ids, free, holes, strict=True)
        ]
        if not any(moving):
            return None
        size = {hole: list(holes).count(hole) for hole in set(holes)}
        deleting = -1
        places: list[tuple[int, bool]] = []
        for place, (token, hole) in enumerate(zip(ids, holes, strict=True)):
            if moving[place] and token == self._delete:
                deleting = hole
            elif moving[place]:
                grows = size[hole] < self._most
                size[hole] += grows
                places += [(place, True)] * (1 + grows)
            elif not (free[place] and hole >= 0 and hole == deleting):
                places.append((place, False))
        return places
