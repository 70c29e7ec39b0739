"""The trainer's forward against the engine's, row for row, and its gradients against finite differences."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.models.adapter import load_adapter
from engine.models.base import CanvasRows
from engine.models.digest import sha256_of_file
from engine.models.hybrid import MASK_ID, HybridDenoiser
from engine.training.canvas_rows import MASK, Block, build_canvas_rows
from engine.training.differentiable import FrozenModel, Rows, encode_context, run_gap
from engine.training.low_rank import LowRankTerms
from tests.fakes.tiny_loading import load
from tests.fakes.tiny_training import fresh_terms, frozen_model, random_terms

CONTEXT = list(b"def mean(values):\n    return ")
GAP = build_canvas_rows(
    40,
    list(b"sum(values) / 2"),
    41,
    [Block(0, (True,) * 4), Block(3, (True, True, False, False)), Block(11, (True, False, True))],
)


@pytest.fixture
def model(tiny: Path) -> FrozenModel:
    return frozen_model(tiny)


@pytest.fixture
def terms(model: FrozenModel, tiny: Path, adapter: Path) -> LowRankTerms:
    return LowRankTerms(model.shape, load_adapter(adapter, model.shape, sha256_of_file(tiny)).tensors)


def rows_at(start: int) -> Rows:
    return Rows(GAP.ids, GAP.offsets + start, GAP.visible)


def engine_logits(engine: HybridDenoiser, rows: Rows, *, adapted: bool) -> torch.Tensor:
    context = engine.context_for(CONTEXT)
    engine.encode(context, CONTEXT)
    try:
        return engine.step(context, CanvasRows(rows.ids, rows.positions, rows.visible, adapted)).clone()
    finally:
        engine.release(context)


def test_masks_are_the_same_row_on_both_sides() -> None:
    assert MASK == MASK_ID


def test_the_rows_of_a_gap_are_the_engines(tiny: Path, adapter: Path, model: FrozenModel, terms: LowRankTerms) -> None:
    engine = load(tiny, adapter=adapter, precision="fp32")
    rows = rows_at(len(CONTEXT))
    hidden = run_gap(model, terms, rows, encode_context(model, CONTEXT))
    expected = engine_logits(engine, rows, adapted=True)
    # Logits of size one to ten, summed in another order.
    assert torch.allclose(hidden @ model.head.t(), expected, rtol=1e-4, atol=1e-4)


def test_fresh_terms_leave_known_rows_to_the_plain_model(tiny: Path, model: FrozenModel) -> None:
    engine = load(tiny, precision="fp32")
    known = Rows(GAP.ids[: GAP.causal], GAP.offsets[: GAP.causal] + len(CONTEXT), torch.ones(16, 16).tril().bool())
    hidden = run_gap(model, fresh_terms(model), known, encode_context(model, CONTEXT))
    assert torch.allclose(hidden @ model.head.t(), engine_logits(engine, known, adapted=False), rtol=1e-4, atol=1e-4)


def test_the_context_has_no_terms_and_no_gradient(model: FrozenModel) -> None:
    keys, values = encode_context(model, CONTEXT)[-1]
    assert keys.shape == values.shape == (model.shape.kv_heads, len(CONTEXT), model.shape.head_dim)
    assert not keys.requires_grad
    assert not values.requires_grad


def test_causal_rows_do_not_depend_on_masks(model: FrozenModel) -> None:
    terms, context = random_terms(model), encode_context(model, CONTEXT)
    with torch.no_grad():
        together = run_gap(model, terms, rows_at(len(CONTEXT)), context)[: GAP.causal]
        known = Rows(GAP.ids[:16], GAP.offsets[:16] + len(CONTEXT), GAP.visible[:16, :16])
        alone = run_gap(model, terms, known, context)
    assert torch.allclose(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["lora_A", "lora_B", "mask_embedding"])
def test_gradients_are_what_finite_differences_say(model: FrozenModel, kind: str) -> None:
    terms, rows, context = random_terms(model), rows_at(len(CONTEXT)), encode_context(model, CONTEXT)
    labels = GAP.labels.clamp_min(0)

    def loss() -> torch.Tensor:
        logits = run_gap(model, terms, rows, context) @ model.head.t()
        return torch.nn.functional.cross_entropy(logits, labels)

    loss().backward()  # type: ignore[no-untyped-call]
    chosen = [parameter for name, parameter in terms.parameters.items() if name.endswith(kind)]
    gradients = [parameter.grad.clone() for parameter in chosen if parameter.grad is not None]
    assert len(gradients) == len(chosen)
    dice = torch.Generator().manual_seed(1)
    size = torch.stack([gradient.norm() for gradient in gradients]).norm()
    for _ in range(3):
        # Along the gradient, so that the slope stands out from rounding, and to the side, so that nothing is missed.
        directions = [g / size + torch.randn(g.shape, generator=dice) / g.numel() ** 0.5 for g in gradients]
        expected = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
        step = 3e-3
        with torch.no_grad():
            values = []
            for sign in (1, -2):
                for parameter, direction in zip(chosen, directions, strict=True):
                    parameter.add_(direction, alpha=sign * step)
                values.append(float(loss()))
            for parameter, direction in zip(chosen, directions, strict=True):
                parameter.add_(direction, alpha=step)
        measured = (values[0] - values[1]) / (2 * step)
        # Float32 losses of about five differ by 1e-6 from rounding: 2e-4 of slope at this step.
        assert measured == pytest.approx(expected, rel=0.02, abs=1e-3)
