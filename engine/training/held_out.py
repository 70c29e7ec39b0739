"""How good the terms are on held-out gaps: likelihood, end tokens, and how far masks agree with the causal mode.

Everything here is teacher-forced and cheap; what text the engine makes with an adapter is measured by the benches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.training.batches import TrainingGap
from engine.training.canvas_rows import CanvasRows
from engine.training.differentiable import FrozenModel, Rows, encode_context, run_gap
from engine.training.low_rank import LowRankTerms
from engine.training.objective import ReducedHead


@dataclass(frozen=True, slots=True)
class GapScore:
    """nll: summed over the gap's tokens and its end, in nats. correct: whether the causal mode's first choice is the
    true token, per place. ends: whether it ends the gap where it ends. runs: per all-masked block, how many leading
    masks choose what the causal mode chooses; depths: agreement per place behind the anchor."""

    kind: str
    order: str
    nll: float
    correct: tuple[bool, ...]
    ends: bool
    runs: tuple[int, ...]
    depths: tuple[tuple[int, bool], ...]


def rows_of(gap: TrainingGap, device: torch.device) -> Rows:
    """The gap's rows behind its context."""
    rows = gap.rows
    return Rows(rows.ids.to(device), (rows.offsets + len(gap.context)).to(device), rows.visible.to(device))


def score_gap(model: FrozenModel, terms: LowRankTerms, head: ReducedHead, gap: TrainingGap) -> GapScore:
    """Score one gap with the terms as they are."""
    at = model.embedding.device
    with torch.no_grad():
        hidden = run_gap(model, terms, rows_of(gap, at), encode_context(model, gap.context))
        logits, columns = head(hidden, gap.rows.labels.to(at))
    rows = gap.rows
    chosen = logits.argmax(-1).cpu()
    columns = columns.cpu()
    log_p = logits[: rows.causal].log_softmax(-1).cpu()
    nll = -log_p.gather(1, columns[: rows.causal, None]).sum()
    correct = (chosen[: rows.causal] == columns[: rows.causal]).tolist()
    runs, depths = _agreement(rows, chosen)
    return GapScore(gap.kind, gap.order, float(nll), tuple(correct), bool(correct[-1]), runs, depths)


def _agreement(rows: CanvasRows, chosen: torch.Tensor) -> tuple[tuple[int, ...], tuple[tuple[int, bool], ...]]:
    agrees = (chosen == chosen[rows.teachers]).tolist()
    runs: list[int] = []
    depths: list[tuple[int, bool]] = []
    running = False
    for index in range(rows.causal, len(agrees)):
        depth = int(rows.depths[index])
        if depth == 0:
            continue
        if depth == 1:
            runs.append(0)
            running = True
        running = running and agrees[index]
        runs[-1] += running
        depths.append((depth, agrees[index]))
    return tuple(runs), tuple(depths)


def summarise(scores: Sequence[GapScore]) -> dict[str, float]:
    """Averages over gaps, by kind and order too: what a metrics line holds."""
    result = {
        "nll": _mean_nll(scores),
        "top1": _mean([hit for score in scores for hit in score.correct]),
        "whole": _mean([all(score.correct) for score in scores]),
        "ends": _mean([score.ends for score in scores]),
        "tokens_per_pass": 1 + _mean([run for score in scores for run in score.runs]),
    }
    for depth in (1, 2, 3, 4):
        result[f"mask_{depth}"] = _mean([hit for score in scores for d, hit in score.depths if d == depth])
    grouped: dict[str, list[GapScore]] = defaultdict(list)
    for score in scores:
        grouped[f"nll_{score.kind}"].append(score)
        grouped[f"nll_{score.order}"].append(score)
    return result | {name: _mean_nll(group) for name, group in sorted(grouped.items())}


def _mean_nll(scores: Sequence[GapScore]) -> float:
    tokens = sum(len(score.correct) for score in scores)
    return sum(score.nll for score in scores) / max(1, tokens)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
