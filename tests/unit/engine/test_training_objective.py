"""The loss of a gap's rows: each term by itself, what follows whom, and the reduced output layer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.training.canvas_rows import NO_LABEL, Block, CanvasRows, build_canvas_rows
from engine.training.objective import GapLoss, LossWeights, gap_loss
from tests.fakes.tiny_training import frozen_model, reduced_head

TEXT = [1, 2, 3, 4, 5]
FULL, REVEALED = Block(0, (True,) * 4), Block(2, (True, False, True))
PLAIN = LossWeights(masks=1, distilled=0, end=1, decay=2, revealed=0.5, per_tokens=1)


def rows_of(*blocks: Block) -> CanvasRows:
    return build_canvas_rows(0, TEXT, 6, blocks)


def logits_for(rows: CanvasRows, *, seed: int = 0, scale: float = 2.0) -> torch.Tensor:
    dice = torch.Generator().manual_seed(seed)
    return (torch.randn(rows.ids.shape[0], 8, generator=dice) * scale).requires_grad_()


def loss_of(logits: torch.Tensor, rows: CanvasRows, weights: LossWeights) -> GapLoss:
    return gap_loss(logits, rows.labels, rows, weights)


def total(loss: GapLoss) -> float:
    return float(loss.detached().total)


def gradient(logits: torch.Tensor, rows: CanvasRows, weights: LossWeights) -> torch.Tensor:
    return torch.autograd.grad(loss_of(logits, rows, weights).total, logits)[0]


def cross_entropies(logits: torch.Tensor, rows: CanvasRows) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, rows.labels, reduction="none", ignore_index=NO_LABEL).detach()


def test_without_masks_the_loss_is_the_texts() -> None:
    rows = rows_of()
    logits = logits_for(rows)
    each = cross_entropies(logits, rows)
    loss = loss_of(logits, rows, replace(PLAIN, per_tokens=3))
    assert total(loss) == pytest.approx(float(each.sum()) / 3, rel=1e-5)
    assert loss.causal_sum == pytest.approx(float(each.sum()), rel=1e-5)
    assert (loss.causal_count, loss.mask_sum, loss.mask_weight) == (6, 0, 0)


def test_the_end_weighs_more_in_the_total_and_not_in_the_report() -> None:
    rows = rows_of()
    logits = logits_for(rows)
    light, heavy = loss_of(logits, rows, PLAIN), loss_of(logits, rows, replace(PLAIN, end=3))
    assert total(heavy) - total(light) == pytest.approx(2 * float(cross_entropies(logits, rows)[-1]), rel=1e-4)
    assert heavy.causal_sum == light.causal_sum


def test_near_masks_weigh_more_and_masks_weigh_as_much_as_the_text() -> None:
    rows = rows_of(FULL, REVEALED)
    logits = logits_for(rows)
    each = cross_entropies(logits, rows)
    shares = torch.tensor([math.exp(-depth / 2) for depth in range(4)] + [0, 0.5, 0.5])
    masks = float((each[6:] * shares).sum() / shares.sum())
    loss = loss_of(logits, rows, replace(PLAIN, masks=0.25))
    assert total(loss) == pytest.approx(float(each[:6].sum()) + 0.25 * 6 * masks, rel=1e-5)
    assert loss.mask_sum / loss.mask_weight == pytest.approx(masks, rel=1e-5)


def test_wholly_distilled_masks_follow_the_text_rows_and_do_not_pull_at_them() -> None:
    rows = rows_of(FULL)
    logits = logits_for(rows)
    weights = replace(PLAIN, distilled=1)
    pulled = gradient(logits, rows, weights)
    assert torch.allclose(pulled[:6], gradient(logits, rows, replace(weights, masks=0))[:6])
    # A mask that says what its teacher says is at the minimum: nothing pulls at it.
    agreeing = logits.detach().clone()
    agreeing[6:] = agreeing[rows.teachers[6:]]
    at_rest = gradient(agreeing.requires_grad_(), rows, weights)
    assert at_rest[6:].abs().max() < 1e-5
    assert pulled[6:].abs().max() > 1e-2


def test_rows_of_blocks_that_reveal_text_follow_the_text_alone() -> None:
    rows = rows_of(REVEALED)
    logits = logits_for(rows)
    taught, untaught = (total(loss_of(logits, rows, replace(PLAIN, distilled=share))) for share in (1, 0))
    assert taught == untaught


def test_undistilled_masks_follow_the_true_text() -> None:
    rows = rows_of(FULL)
    logits = logits_for(rows)
    lower = gradient(logits, rows, PLAIN).gather(1, rows.labels[:, None])
    assert (lower < 0).all()
    halfway, *ends = (total(loss_of(logits, rows, replace(PLAIN, distilled=share))) for share in (0.5, 0, 1))
    assert halfway == pytest.approx(sum(ends) / 2, rel=1e-5)


def test_masks_that_weigh_nothing_are_no_masks() -> None:
    rows = rows_of(REVEALED)
    logits = logits_for(rows)
    loss = loss_of(logits, rows, replace(PLAIN, revealed=0))
    assert total(loss) == pytest.approx(float(cross_entropies(logits, rows)[:6].sum()), rel=1e-5)
    assert loss.mask_weight == 0


@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 30.0, 1e4]), st.sampled_from([0.0, 0.5, 1.0]))
def test_loss_and_gradient_are_finite(seed: int, scale: float, distilled: float) -> None:
    rows = rows_of(FULL, REVEALED)
    logits = logits_for(rows, seed=seed, scale=scale)
    loss = loss_of(logits, rows, LossWeights(distilled=distilled))
    assert bool(loss.total.isfinite())
    assert bool(gradient(logits, rows, LossWeights(distilled=distilled)).isfinite().all())
    assert not loss.detached().total.requires_grad


def test_the_reduced_layer_is_the_whole_one_over_fewer_ids(tiny: Path) -> None:
    model = frozen_model(tiny)
    frequent = [9, 3, 200, 50]
    hidden = torch.randn(6, model.shape.hidden, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([3, 120, NO_LABEL, 77, 120, 200])
    logits, columns = reduced_head(model, frequent)(hidden, labels)
    ids = torch.tensor([*frequent, 77, 120])
    assert torch.allclose(logits, hidden @ model.head[ids].t(), rtol=1e-5, atol=1e-5)
    assert columns.tolist() == [1, 5, NO_LABEL, 4, 5, 2]


def test_labels_of_one_gap_leave_the_next_one_alone(tiny: Path) -> None:
    model = frozen_model(tiny)
    head = reduced_head(model, [9, 3])
    hidden = torch.ones(2, model.shape.hidden)
    head(hidden, torch.tensor([100, 101]))
    logits, columns = head(hidden, torch.tensor([9, NO_LABEL]))
    assert logits.shape == (2, 2)
    assert columns.tolist() == [0, NO_LABEL]
    assert head(hidden, torch.tensor([101, 9]))[1].tolist() == [2, 0]


def test_an_id_that_comes_twice_is_refused(tiny: Path) -> None:
    model = frozen_model(tiny)
    with pytest.raises(ValueError, match="hold one twice"):
        reduced_head(model, [1, 2, 1])


@pytest.mark.parametrize(
    "wrong", [{"masks": -1.0}, {"distilled": 1.5}, {"end": math.nan}, {"decay": 0.0}, {"per_tokens": math.inf}]
)
def test_weights_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LossWeights(**wrong)
