"""What a pass costs by its number of rows, and how long a draft is worth its rows at that price. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class CostCurve:
    """points: (rows, cost), rows ascending from 1, costs in single-token passes and never falling; at least one.

    Between points the cost is linear; behind the last one it goes on as steeply as before it.
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        if not self.points or self.points[0] != (1, 1.0):
            raise ValueError(f"a cost curve begins with one row at cost 1, got {self.points[:1]}")
        if any(wide <= narrow or not dear >= cheap for (narrow, cheap), (wide, dear) in pairwise(self.points)):
            raise ValueError(f"a cost curve ascends, got {self.points}")
        if not math.isfinite(self.points[-1][1]):
            raise ValueError("a cost curve holds a number that is not finite")

    @classmethod
    def linear(cls, row_cost: float) -> CostCurve:
        """Every row more costs `row_cost` single-token passes."""
        return cls(((1, 1.0), (2, 1.0 + row_cost)))

    @classmethod
    def measured(cls, forward_ms: Sequence[tuple[int, float]]) -> CostCurve | None:
        """The ascending curve nearest to (rows, milliseconds) pairs; None where they do not say what one row costs.

        Neighbours that fall are noise and are pooled to their mean (pool adjacent violators, Ayer et al. 1955).
        """
        pairs = sorted(forward_ms)
        if len(pairs) < 2 or pairs[0][0] != 1 or not all(0 < ms < math.inf for _, ms in pairs):
            return None
        pools: list[tuple[float, int]] = []
        for _, ms in pairs:
            pools.append((ms, 1))
            while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
                (left, many), (right, few) = pools[-2:]
                pools[-2:] = [((left * many + right * few) / (many + few), many + few)]
        level = [mean for mean, count in pools for _ in range(count)]
        return cls(tuple((rows, ms / level[0]) for (rows, _), ms in zip(pairs, level, strict=True)))

    def of(self, rows: int) -> float:
        """The cost of a pass of `rows` rows."""
        if rows <= 1 or len(self.points) == 1:
            return 1.0
        behind = next((i for i, (wide, _) in enumerate(self.points) if rows <= wide), len(self.points) - 1)
        (low, cheap), (high, dear) = self.points[behind - 1], self.points[behind]
        return cheap + (dear - cheap) * (rows - low) / (high - low)

    def row(self, rows: int) -> float:
        """What one row more costs in a pass of `rows` rows."""
        return self.of(rows + 1) - self.of(rows)


def worthwhile(reached: Sequence[float], costs: CostCurve, beside: int = 0) -> int:
    """How many draft tokens to check: the number with which a pass settles most tokens for its price.

    reached: for each token of a draft, the chance that it and all before it are kept. One token comes with any pass.
    What is not checked in this pass can be checked in the next one, so it is the rate that counts and not whether a
    row pays for itself alone. Of equal rates the longer draft wins. beside: rows of the pass that run in any case.
    """
    best, rate = 0, 1.0 / costs.of(1 + beside)
    settled = 1.0
    for length, chance in enumerate(reached, start=1):
        settled += chance
        now = settled / costs.of(1 + beside + length)
        if now >= rate:
            best, rate = length, now
    return best
