"""The measured costs of one model on one machine: kept in a small file, compared with ordinary passes, refreshed.

Owns the file and what was observed. How costs are measured is `calibration`'s, what they decide is `router`'s.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from engine.calibration import ForwardCosts, Measured, measure, measuring
from engine.diffusion.cost_curve import CostCurve
from engine.models.base import CanvasRows, Context, Denoiser, ModelFacts, Tokenizer
from engine.runtime.packed import find_kernel

OFF_BY = 0.3
"""Passes that take this much more or less than was measured, in the median, have it measured again."""
OBSERVED = 48
"""How many of the latest passes that median is of."""


@dataclass(slots=True)
class MachineCosts:
    """What passes cost here. `file` is None where nothing is to be kept."""

    file: Path | None = None
    machine: str = ""
    measured: Measured = field(default_factory=lambda: Measured((), steady=True))
    _ratios: deque[float] = field(default_factory=lambda: deque(maxlen=OBSERVED))

    @classmethod
    def at_start(cls, model: Denoiser, file: Path, threads: int, clock: Callable[[], float]) -> MachineCosts:
        """From `file` when it is for this machine, model and thread count, else measured and kept.

        Costs that are no longer true are a good start, and are measured again when the engine is idle (`refresh`). A
        file that cannot be read or written costs only the time of measuring.
        """
        machine = machine_of(model, threads)
        known = _read(file, machine)
        costs = cls(file, machine, known or Measured((), steady=False))
        if known is None:
            costs._keep(measure(model, clock))
        return costs

    @property
    def forward_ms(self) -> ForwardCosts:
        """(rows, milliseconds) pairs."""
        return self.measured.forward_ms

    @property
    def curve(self) -> CostCurve | None:
        """The same as a curve; None when nothing was measured."""
        return CostCurve.measured(self.measured.forward_ms)

    @property
    def due(self) -> bool:
        """Whether idle time is to be spent on measuring again: the costs are not to be trusted, and since they were
        last measured there was work enough to make it worth while."""
        return not self.measured.steady and len(self._ratios) == OBSERVED

    def observe(self, rows: int, ms: float) -> None:
        """Take in an ordinary pass. Once passes take other times than measured, the file says so for the next start."""
        curve = self.curve
        if curve is None or ms <= 0:
            return
        self._ratios.append(ms / (curve.of(rows) * self.forward_ms[0][1]))
        if self.measured.steady and len(self._ratios) == OBSERVED and self.off_by > OFF_BY:
            self.measured = Measured(self.forward_ms, steady=False)
            self._write()

    @property
    def off_by(self) -> float:
        """By which share the latest passes took more or less than measured; 0.0 before any."""
        if not self._ratios:
            return 0.0
        middle = statistics.median(self._ratios)
        return max(middle, 1 / middle) - 1

    def refresh(self, model: Denoiser, clock: Callable[[], float]) -> Generator[None, None, None]:
        """Measure again, one pass a step, for idle time; closed before its end it changes nothing."""
        self._keep((yield from measuring(model, clock)))

    def _keep(self, measured: Measured) -> None:
        self.measured = measured
        self._ratios.clear()
        self._write()

    def _write(self) -> None:
        measured = self.measured
        if self.file is None:
            return
        stored = {"machine": self.machine, "forward_ms": measured.forward_ms, "steady": measured.steady}
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            partial = self.file.with_name(f"{self.file.name}.{os.getpid()}")
            partial.write_text(json.dumps(stored), encoding="utf-8")
            partial.replace(self.file)
        except OSError:
            return


class TimedDenoiser:
    """A `Denoiser` whose every pass is told to `costs`; all else is the model's own."""

    def __init__(self, model: Denoiser, costs: MachineCosts, clock: Callable[[], float]) -> None:
        self._model = model
        self._costs = costs
        self._clock = clock

    @property
    def facts(self) -> ModelFacts:
        return self._model.facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    def context_for(self, ids: Sequence[int]) -> Context:
        """See `Denoiser.context_for`."""
        return self._model.context_for(ids)

    def spare_context_for(self, ids: Sequence[int]) -> Context | None:
        """See `Denoiser.spare_context_for`."""
        return self._model.spare_context_for(ids)

    def release(self, context: Context) -> None:
        """See `Denoiser.release`."""
        self._model.release(context)

    def encode(self, context: Context, ids: Sequence[int]) -> None:
        """See `Denoiser.encode`."""
        self._model.encode(context, ids)

    def step(self, context: Context, rows: CanvasRows) -> torch.Tensor:
        """See `Denoiser.step`. Waits for a GPU, as whoever reads the logits does anyway."""
        began = self._clock()
        logits = self._model.step(context, rows)
        if rows.logit_rows == 0:  # without the head a pass is another thing than what was measured
            return logits
        logits[:, :1].tolist()
        self._costs.observe(rows.ids.shape[0], (self._clock() - began) * 1000)
        return logits


def machine_of(model: Denoiser, threads: int) -> str:
    """What costs are kept for: another processor, kernel, thread count, torch, model or adapter has others."""
    facts = model.facts
    kernel = found.name if (found := find_kernel()) else "none"
    parts = (platform.machine(), platform.node(), str(os.cpu_count()), str(threads), torch.__version__, kernel)
    return "|".join((*parts, facts.name, facts.device, facts.precision, facts.adapter))


def _read(file: Path, machine: str) -> Measured | None:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["machine"] != machine:
            return None
        forward_ms = tuple((int(rows), float(cost)) for rows, cost in stored["forward_ms"])
        return Measured(forward_ms, bool(stored["steady"])) if CostCurve.measured(forward_ms) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
