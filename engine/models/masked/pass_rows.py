"""What one job's canvases feed into a forward pass, and several jobs' rows as one batch: `PassRows`, `joined`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from engine.models.masked.context import MaskedContext
from engine.runtime.joint_cache import JointCache, stacked_masks

_WORTH_PADDING = 2
"""Rows share a pass with others up to so many times their length: what pads them is computed for nothing."""


@dataclass(frozen=True, slots=True)
class PassRows:
    """The rows of one job, one for each of its canvases.

    ids, positions: [rows, n] int64. mask: bool, to [rows, 1, n, held + n], true where seen, None where everything is.
    first: the row of the hidden states that the canvas's first place is predicted from. lengths: places of each canvas.
    keep: so many places become known text with the pass; -1 for none.
    """

    context: MaskedContext
    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor | None
    first: int
    lengths: tuple[int, ...]
    keep: int = -1

    @property
    def places(self) -> int:
        """n."""
        return self.ids.shape[1]

    def whole_mask(self) -> torch.Tensor:
        """[rows, 1, n, held + n], whatever is left out of `mask`."""
        rows, places = self.ids.shape
        seen = self.context.resident.cache.held + places
        if self.mask is None:
            return torch.ones((rows, 1, places, seen), dtype=torch.bool, device=self.ids.device)
        return self.mask.expand(rows, 1, places, seen)

    def finish(self) -> None:
        """Note what the pass has left in the job's cache."""
        if self.keep >= 0:
            self.context.resident.cache.keep(self.keep)
            self.context.lengths = list(self.lengths)

    def of_canvases(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        """Of `hidden` [rows, >= n, width] the rows that each canvas's places are predicted from."""
        return [hidden[row, self.first : self.first + length] for row, length in enumerate(self.lengths)]


@dataclass(frozen=True, slots=True)
class JointRows:
    """Several jobs' rows as one batch. parts: of each job, in the order of the rows."""

    parts: tuple[PassRows, ...]
    cache: JointCache
    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor

    def split(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        """`hidden` [rows, n, width] of the batch, by job."""
        return list(torch.split(hidden, [part.ids.shape[0] for part in self.parts]))


def joined(parts: Sequence[PassRows], layers: int) -> JointRows:
    """The rows of all parts, padded behind to the longest."""
    longest = max(part.places for part in parts)
    most = max(part.context.resident.cache.held + part.places for part in parts)
    appends = [part.context.resident.cache.append for part in parts]
    return JointRows(
        tuple(parts),
        JointCache(layers, appends, [(part.ids.shape[0], part.places) for part in parts]),
        torch.cat([pad(part.ids, (0, longest - part.places)) for part in parts]),
        torch.cat([pad(part.positions, (0, longest - part.places)) for part in parts]),
        stacked_masks([part.whole_mask() for part in parts], longest, most),
    )


def worth_joining(parts: Sequence[PassRows]) -> list[list[int]]:
    """The numbers of the parts, in groups that are worth a pass: of about the same length."""
    groups: list[list[int]] = []
    longest = 0
    for number in sorted(range(len(parts)), key=lambda each: -parts[each].places):
        if groups and parts[number].places * _WORTH_PADDING >= longest:
            groups[-1].append(number)
        else:
            longest = parts[number].places
            groups.append([number])
    return groups
