"""Scores of held-out gaps: likelihood against a plain computation, agreement of masks, and their averages."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.training.batches import TrainingGap
from engine.training.canvas_rows import Block, build_canvas_rows
from engine.training.differentiable import encode_context, run_gap
from engine.training.held_out import GapScore, MaskScore, gains, rows_of, score_gap, summarise
from engine.training.objective import ReducedHead
from tests.fakes.tiny_training import frozen_model, random_terms, reduced_head

CONTEXT = tuple(b"total = ")
TEXT = tuple(b"sum(values)")
BLOCKS = [Block(0, (True,) * 4), Block(2, (True, True, False)), Block(5, (True,) * 3)]


def gap(blocks: list[Block]) -> TrainingGap:
    return TrainingGap(CONTEXT, build_canvas_rows(70, TEXT, 71, blocks), "prefix_first", "span", "python")


def test_the_score_is_the_texts_likelihood(tiny: Path) -> None:
    model = frozen_model(tiny)
    terms, scored = random_terms(model), gap(BLOCKS)
    with torch.no_grad():
        hidden = run_gap(model, terms, rows_of(gap([]), torch.device("cpu")), encode_context(model, CONTEXT))
    logits = (hidden @ model.head.t())[:, :200]
    targets = torch.tensor([*TEXT, 71])
    score = score_gap(model, terms, reduced_head(model), scored)
    assert score.nll == pytest.approx(float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum")), 1e-4)
    assert list(score.correct) == (logits.argmax(-1) == targets).tolist()
    assert score.ends == score.correct[-1]
    assert (score.kind, score.order) == ("span", "prefix_first")


class _Choosing:
    """An output layer whose first choices are given."""

    def __init__(self, choices: list[int]) -> None:
        self._choices = torch.tensor(choices)

    def __call__(self, hidden: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.nn.functional.one_hot(self._choices, 256).float(), labels


def test_masks_agree_up_to_the_first_that_does_not(tiny: Path) -> None:
    model = frozen_model(tiny)
    rows = gap(BLOCKS).rows
    causal = list(range(1, 13))
    agreeing = [causal[place] for place in rows.teachers.tolist()]
    wrong = {12 + 2, 12 + 4, 12 + 7}  # the third mask of the first block, a revealed block's, the last block's first
    choices = [0 if row in wrong else choice for row, choice in enumerate(agreeing)]
    head: ReducedHead = _Choosing(choices)  # type: ignore[assignment]
    score = score_gap(model, random_terms(model), head, gap(BLOCKS))
    assert [(mask.depth, mask.agrees, mask.reached) for mask in score.masks] == [
        (1, True, True),
        (2, True, True),
        (3, False, True),
        (4, True, False),
        (1, False, True),
        (2, True, False),
        (3, True, False),
    ]
    assert gains(score.masks, 5) == (0.5, 0.5, 0, 0, 0)


def test_averages_are_over_tokens_gaps_and_blocks() -> None:
    masks = (MaskScore(1, True, True, 0.9), MaskScore(2, True, True, 0.8), MaskScore(1, False, True, 0.3))
    scores = [
        GapScore("span", "prefix_first", 3.0, (True, True, False), False, masks),
        GapScore("empty", "suffix_first", 1.0, (True,), True, ()),
    ]
    assert summarise(scores) == {
        "nll": 1.0,
        "top1": 0.75,
        "whole": 0.5,
        "ends": 0.5,
        "tokens_per_pass": 2.0,
        "mask_1": 0.5,
        "mask_2": 1.0,
        "mask_3": 0.0,
        "mask_4": 0.0,
        "nll_empty": 1.0,
        "nll_prefix_first": 1.0,
        "nll_span": 1.0,
        "nll_suffix_first": 1.0,
    }
