"""The length of a gap: which lengths to try, and how their confidences are compared. Pure.

A model is surer of short gaps for no good reason: its mean probability falls with the number of masks even at the true
length. CAL (2026) divides by that bias before lengths are compared; here the bias is a record fitted per model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

_SPREAD = (4, 8, 16, 32, 64)
_FAST_RATES = tuple(0.2 * 1.35**step for step in range(10))
_SLOW_RATES = tuple(0.005 * 1.5**step for step in range(10))


@dataclass(frozen=True, slots=True)
class LengthCalibration:
    """The mean probability of a first pass at the true length, as a function of that length:

    fast * exp(-fast_rate * n) + slow * exp(-slow_rate * n) + floor. The default numbers are CAL's for LLaDA-8B.
    """

    fast: float = 1.0
    fast_rate: float = 1.77
    slow: float = 0.56
    slow_rate: float = 0.06
    floor: float = 0.24

    def __post_init__(self) -> None:
        values = [getattr(self, field.name) for field in fields(self)]
        if not all(math.isfinite(value) and value >= 0 for value in values) or not self.floor > 0:
            raise ValueError("a length calibration holds finite numbers that are not negative, the floor above 0")

    def bias(self, length: int) -> float:
        """The confidence expected of a gap of `length` places."""
        decayed = self.fast * math.exp(-self.fast_rate * length) + self.slow * math.exp(-self.slow_rate * length)
        return decayed + self.floor

    def score(self, length: int, confidence: float) -> float:
        """How good a confidence is for that length; comparable between lengths. NaN counts as none."""
        return 0.0 if math.isnan(confidence) else confidence / self.bias(length)

    @classmethod
    def fit(cls, samples: Sequence[tuple[int, float]]) -> LengthCalibration:
        """Fit to (true length, mean probability of a first pass), by least squares over a grid of the two rates.

        Raises ValueError for fewer than three different lengths: nothing can be told from them.
        """
        if len({length for length, _ in samples}) < 3:
            raise ValueError("a length calibration needs samples of at least three different lengths")
        lengths = torch.tensor([length for length, _ in samples], dtype=torch.float64)
        seen = torch.tensor([confidence for _, confidence in samples], dtype=torch.float64)
        best, record = math.inf, cls()
        for fast_rate in _FAST_RATES:
            for slow_rate in _SLOW_RATES:
                if slow_rate >= fast_rate:
                    continue
                weights = _non_negative(lengths, seen, (fast_rate, slow_rate))
                found = cls(float(weights[0]), fast_rate, float(weights[1]), slow_rate, max(1e-3, float(weights[2])))
                error = sum((found.bias(length) - confidence) ** 2 for length, confidence in samples)
                if error < best:
                    best, record = error, found
        return record

    def save(self, path: Path) -> None:
        """Write the record beside its model."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> LengthCalibration:
        """Read what `save` wrote. Raises ValueError for anything else."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{str(name): float(value) for name, value in values.items()})
        except (AttributeError, TypeError, ValueError) as fault:
            raise ValueError(f"{path.name} is no length calibration: {fault}") from fault


def _non_negative(lengths: torch.Tensor, seen: torch.Tensor, rates: tuple[float, float]) -> torch.Tensor:
    """[3] weights of the two decays and the constant, least squares with none below 0: the worst column goes first."""
    columns = torch.stack([*(torch.exp(-rate * lengths) for rate in rates), torch.ones_like(lengths)], dim=1)
    used = [0, 1, 2]
    while True:
        solved = torch.linalg.lstsq(columns[:, used], seen[:, None], driver="gelsd").solution[:, 0]
        if len(used) == 1 or bool((solved >= 0).all()):
            weights = torch.zeros(3, dtype=torch.float64)
            weights[used] = solved.clamp_min(0)
            return weights
        used.pop(int(solved.argmin()))


@dataclass(frozen=True, slots=True)
class GapShape:
    """What the surroundings tell of a gap's length, in tokens.

    present: of the text that stands in the gap now, 0 for none. lines: of the lines around the gap that hold something,
    nearest first. on_line: tokens already on the gap's line, on both sides of it. whole_lines: whether the gap takes
    lines of its own, so that it may have more than one.
    """

    present: int = 0
    lines: tuple[int, ...] = ()
    on_line: int = 0
    whole_lines: bool = False


def candidate_lengths(shape: GapShape, most: int, count: int = 6) -> tuple[int, ...]:
    """At most `count` lengths up to `most` that are worth trying, ascending: the present one always, then what lines
    around suggest, then a coarse spread, so that no size is left out.

    Indentation needs no rule of its own: it is part of what the lines around cost in tokens.
    """
    wanted = [shape.present, *_scaled(shape.present, (0.7, 1.4))] if shape.present else []
    if shape.lines:
        typical = sorted(shape.lines)[len(shape.lines) // 2]
        wanted += [typical, 2 * typical, 4 * typical] if shape.whole_lines else [typical - shape.on_line]
    lengths = dict.fromkeys(length for length in wanted if 1 <= length <= most)
    for spread in _SPREAD:
        if spread <= most and all(abs(spread - length) > max(1, length // 5) for length in lengths):
            lengths[spread] = None
    chosen = list(lengths)[:count] or [most]
    return tuple(sorted(chosen))


def _scaled(length: int, factors: Sequence[float]) -> list[int]:
    return [max(1, round(length * factor)) for factor in factors]
