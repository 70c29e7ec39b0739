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

_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class MaskScore:
    """A mask of an all-masked block. depth: places behind the anchor, 1 for the first. agrees: its first choice is the
    causal mode's. reached: so were those of the masks before it. probability: of its first choice."""

    depth: int
    agrees: bool
    reached: bool
    probability: float


@dataclass(frozen=True, slots=True)
class GapScore:
    """nll: summed over the gap's tokens and its end, in nats. correct: whether the causal mode's first choice is the
    true token, per place. ends: whether it ends the gap where it ends. masks: those of all-masked blocks, in order."""

    kind: str
    order: str
    nll: float
    correct: tuple[bool, ...]
    ends: bool
    masks: tuple[MaskScore, ...]


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
    best = logits.softmax(-1).max(-1)
    chosen = best.indices.cpu()
    columns = columns.cpu()
    log_p = logits[: rows.causal].log_softmax(-1).cpu()
    nll = -log_p.gather(1, columns[: rows.causal, None]).sum()
    correct = (chosen[: rows.causal] == columns[: rows.causal]).tolist()
    masks = _mask_scores(rows, chosen, best.values.tolist())
    return GapScore(gap.kind, gap.order, float(nll), tuple(correct), bool(correct[-1]), masks)


def _mask_scores(rows: CanvasRows, chosen: torch.Tensor, probabilities: Sequence[float]) -> tuple[MaskScore, ...]:
    agrees = (chosen == chosen[rows.teachers]).tolist()
    scores: list[MaskScore] = []
    reached = True
    for index in range(rows.causal, len(agrees)):
        depth = int(rows.depths[index])
        if depth == 0:
            continue
        reached = depth == 1 or (reached and agrees[index - 1])
        scores.append(MaskScore(depth, agrees[index], reached, probabilities[index]))
    return tuple(scores)


def summarise(scores: Sequence[GapScore]) -> dict[str, float]:
    """Averages over gaps, by kind and order too: what a metrics line holds."""
    masks = [mask for score in scores for mask in score.masks]
    result = {
        "nll": _mean_nll(scores),
        "top1": _mean([hit for score in scores for hit in score.correct]),
        "whole": _mean([all(score.correct) for score in scores]),
        "ends": _mean([score.ends for score in scores]),
        "tokens_per_pass": 1 + sum(gains(masks, _DEEPEST)),
    }
    for depth in (1, 2, 3, 4):
        result[f"mask_{depth}"] = _mean([mask.agrees for mask in masks if mask.depth == depth])
    grouped: dict[str, list[GapScore]] = defaultdict(list)
    for score in scores:
        grouped[f"nll_{score.kind}"].append(score)
        grouped[f"nll_{score.order}"].append(score)
    return result | {name: _mean_nll(group) for name, group in sorted(grouped.items())}


def gains(masks: Sequence[MaskScore], deepest: int) -> tuple[float, ...]:
    """By depth, the share of blocks whose masks up to that depth all agree: what a mask there is expected to save."""
    blocks = max(1, sum(mask.depth == 1 for mask in masks))
    kept = (sum(mask.reached and mask.agrees for mask in masks if mask.depth == d) for d in range(1, deepest + 1))
    return tuple(count / blocks for count in kept)


def _mean_nll(scores: Sequence[GapScore]) -> float:
    tokens = sum(len(score.correct) for score in scores)
    return sum(score.nll for score in scores) / max(1, tokens)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
