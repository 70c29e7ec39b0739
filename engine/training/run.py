"""A training run: gaps in, gradients, steps, reports, checkpoints; resumable at any of them.

Owns what happens when; the numbers it depends on are `RunSettings`. It writes into the run's folder, which the caller
holds (`run_folder.claimed`), and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

import torch

from engine.training.batches import GapSequence, TrainingGap
from engine.training.checkpoint import Checkpoint, Standing, write_checkpoint
from engine.training.differentiable import FrozenModel, encode_context, run_gap
from engine.training.held_out import rows_of, score_gap, summarise
from engine.training.low_rank import LowRankTerms
from engine.training.metrics import append_line
from engine.training.objective import GapLoss, ReducedHead, gap_loss
from engine.training.optimiser import DivergedError, Optimiser, require_same_sizes
from engine.training.run_folder import CHECKPOINT, METRICS
from engine.training.run_settings import RunSettings
from engine.training.workers import Workers


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between reports of the loss, held-out evaluations and checkpoints."""

    report: float = 60.0
    held_out: float = 1200.0
    checkpoint: float = 600.0


class TrainingRun:
    """One run over one base model; `standing` says how far it is."""

    def __init__(
        self,
        folder: Path,
        model: FrozenModel,
        base_sha256: str,
        terms: LowRankTerms,
        gaps: GapSequence,
        held_out: Sequence[TrainingGap],
        head: ReducedHead,
        settings: RunSettings,
        *,
        reached: Checkpoint | None = None,
        workers: int = 1,
        clock: Callable[[], float] = perf_counter,
        spent: Callable[[], float] = process_time,
    ) -> None:
        """terms: where a new run starts, and changed by it; `reached` takes their place in a resumed one.

        workers: gaps computed at once, each on one thread. Raises ValueError when `reached` is of other terms.
        """
        self._folder = folder
        self._model = model
        self._base = base_sha256
        self._gaps = gaps
        self._held_out = held_out
        self._head = head
        self._settings = settings
        self._clock = clock
        self._spent = spent
        self._workers = Workers(workers)
        self._terms = terms
        self._optimiser = Optimiser(terms.parameters, settings.optimiser)
        self.standing = Standing(0, 0, 0.0)
        if reached is not None:
            self._resume(reached)

    def train(
        self, until: Callable[[Standing], bool], intervals: Intervals, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Step until `until` says so; report, save and evaluate on the way and at the end.

        stopped: asked between two steps; then only the checkpoint is written. Raises DivergedError, with the folder's
        checkpoint as it was last written; OSError.
        """
        before = self.standing.seconds - self._spent()
        due = _Due(self._clock(), intervals)
        window: list[GapLoss] = []
        if self.standing.step == 0:
            self.evaluate()
        while not (stopped() or until(self.standing)):
            losses, norm = self._step()
            window += losses
            now = self._clock()
            gap = self.standing.gap + self._settings.gaps_per_step
            self.standing = Standing(self._optimiser.step_number, gap, before + self._spent())
            if due.passed("report", now):
                append_line(self._folder / METRICS, "train", self._stamp() | _averages(window) | {"norm": norm})
                window = []
            if due.passed("checkpoint", now):
                self.save()
            if due.passed("held_out", now) and not stopped():
                self.evaluate()
        self.save()
        if not stopped():
            self.evaluate()

    def count(self) -> int:
        """How many numbers are trained."""
        return self._terms.count()

    def evaluate(self) -> dict[str, float]:
        """Score the held-out gaps with the averaged terms and append the report."""
        averaged = LowRankTerms(self._terms.shape, self._optimiser.average)
        scores = [score_gap(self._model, averaged, self._head, gap) for gap in self._held_out]
        numbers = summarise(scores)
        append_line(self._folder / METRICS, "held_out", self._stamp() | numbers)
        return numbers

    def save(self) -> None:
        """Write the checkpoint. Raises ValueError for numbers that are not finite, OSError."""
        first, second = self._optimiser.moments()
        state = Checkpoint(
            self.standing, self._base, dict(self._terms.parameters), self._optimiser.average, first, second
        )
        write_checkpoint(self._folder / CHECKPOINT, state)

    def _resume(self, checkpoint: Checkpoint) -> None:
        require_same_sizes(self._terms.parameters, checkpoint.parameters)
        self.standing = checkpoint.standing
        with torch.no_grad():
            for name, parameter in self._terms.parameters.items():
                parameter.copy_(checkpoint.parameters[name])
        self._optimiser.restore(self.standing.step, checkpoint.average, checkpoint.first, checkpoint.second)

    def _step(self) -> tuple[list[GapLoss], float]:
        """The losses of a step's gaps and the norm of its gradient."""
        try:
            first = self.standing.gap
            gaps = [self._gaps[first + place] for place in range(self._settings.gaps_per_step)]
            losses = self._workers.sum_gradients(gaps, self._terms.parameters, self._loss)
            return losses, self._optimiser.step()
        except DivergedError as fault:
            raise DivergedError(
                f"{fault}: the run has diverged. The folder's last checkpoint is whole; start another run from an"
                " export of it with a smaller optimiser.learning_rate"
            ) from fault

    def _loss(self, gap: TrainingGap) -> tuple[torch.Tensor, GapLoss]:
        """One gap's share of the step's loss, which is a mean over its gaps, and the loss itself."""
        at = self._model.embedding.device
        hidden = run_gap(self._model, self._terms, rows_of(gap, at), encode_context(self._model, gap.context))
        logits, columns = self._head(hidden, gap.rows.labels.to(at))
        loss = gap_loss(logits, columns, gap.rows, self._settings.weights)
        if not math.isfinite(float(loss.total.detach())):
            raise DivergedError(f"the loss of a {gap.kind} gap is not finite ({float(loss.total.detach())})")
        return loss.total / self._settings.gaps_per_step, loss.detached()

    def _stamp(self) -> dict[str, float]:
        return asdict(self.standing)


class _Due:
    """Which of the intervals have passed since they were last asked for."""

    def __init__(self, now: float, intervals: Intervals) -> None:
        self._intervals = asdict(intervals)
        self._last = dict.fromkeys(self._intervals, now)

    def passed(self, name: str, now: float) -> bool:
        if now - self._last[name] < self._intervals[name]:
            return False
        self._last[name] = now
        return True


def _averages(losses: Sequence[GapLoss]) -> dict[str, float]:
    causal = sum(loss.causal_count for loss in losses)
    masks = sum(loss.mask_weight for loss in losses)
    return {
        "causal": sum(loss.causal_sum for loss in losses) / max(1, causal),
        "masks": sum(loss.mask_sum for loss in losses) / max(1e-9, masks),
        "gaps": len(losses),
    }
