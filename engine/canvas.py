"""The canvas: a row of token ids with a state for each place. Every family and every sampler works on this one type.

Free places are still to be denoised and hold noise or a guess; locked ones are given and never change; settled ones are
accepted and may be re-opened by self-correction. A hole is a run of places that are not locked, an island a run of
locked ones. Owns ids and states; text is made by the caller's tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

FREE, LOCKED, SETTLED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Run:
    """Places `[start, end)` of a canvas."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Canvas:
    """ids: [n] int64. state: [n] uint8, `FREE`, `LOCKED` or `SETTLED`.

    confidence: [n] float32, the probability of the present token when the model last judged it; 1 for locked places, 0
    for noise. All on one device. The tensors are never written to: a changed canvas is a new one.
    """

    ids: torch.Tensor
    state: torch.Tensor
    confidence: torch.Tensor

    @classmethod
    def of(cls, parts: Sequence[tuple[Sequence[int], int]], device: torch.device | str = "cpu") -> Canvas:
        """A canvas of runs, each (ids, state)."""
        ids = [token for run, _ in parts for token in run]
        state = [kind for run, kind in parts for _ in run]
        states = torch.tensor(state, dtype=torch.uint8, device=device)
        return cls(torch.tensor(ids, dtype=torch.int64, device=device), states, (states == LOCKED).float())

    @property
    def length(self) -> int:
        """How many places there are."""
        return self.ids.shape[0]

    @property
    def free(self) -> torch.Tensor:
        """[n] bool."""
        return self.state == FREE

    @property
    def locked(self) -> torch.Tensor:
        """[n] bool."""
        return self.state == LOCKED

    @property
    def settled(self) -> torch.Tensor:
        """[n] bool."""
        return self.state == SETTLED

    @property
    def settled_ids(self) -> tuple[int, ...]:
        """The ids of the settled places, from the left. Waits for the device."""
        return tuple(self.ids[self.settled].tolist())

    def holes(self) -> tuple[Run, ...]:
        """The runs between islands, from the left. Waits for the device."""
        runs: list[Run] = []
        start = None
        for place, state in enumerate([*self.state.tolist(), LOCKED]):
            if state == LOCKED and start is not None:
                runs.append(Run(start, place))
                start = None
            elif state != LOCKED and start is None:
                start = place
        return tuple(runs)

    def moved_to(self, device: torch.device | str) -> Canvas:
        """The same canvas on another device."""
        return Canvas(self.ids.to(device), self.state.to(device), self.confidence.to(device))

    def rewritten(self, ids: torch.Tensor) -> Canvas:
        """Other ids everywhere but in locked places, the same states."""
        return replace(self, ids=torch.where(self.locked, self.ids, ids))
