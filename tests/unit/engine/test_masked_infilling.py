"""Infilling really uses both sides: a model trained to a known answer is right with the suffix and wrong without."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from engine.models.canvas_model import Known, StepInput
from engine.models.masked.families import LAYOUTS
from engine.models.masked.model import MaskedModel
from tests.fakes.known_answer import BAR, HALF, MASK, Riddle, masks, riddles, wrap

COUNT = 40
CHANCE = 1 / 12


@pytest.fixture(params=["shifted_answerer", "unshifted_answerer"])
def trained(request: pytest.FixtureRequest) -> MaskedModel:
    model: MaskedModel = request.getfixturevalue(request.param)
    return model


def one_pass(model: MaskedModel, riddle: Riddle, suffix: Sequence[int]) -> torch.Tensor:
    """[6] int64, the likeliest answer in one step."""
    context = model.open(Known(riddle.prefix, tuple(suffix)))
    logits = model.step(context, [StepInput(masks(len(riddle.answer)))])[0].logits
    model.close(context)
    return logits.masked_fill(model.facts.forbidden, -torch.inf).argmax(dim=-1)


def shares(model: MaskedModel, known: Sequence[Riddle]) -> tuple[float, float]:
    """Which shares of the left and of the right half of the answers are right."""
    found = torch.stack([one_pass(model, riddle, riddle.suffix) for riddle in known])
    wanted = torch.tensor([riddle.answer for riddle in riddles(len(known), 1)])
    right = (found == wanted).float().mean(dim=0)
    return float(right[:HALF].mean()), float(right[HALF:].mean())


def test_right_with_the_suffix_and_wrong_without_it(trained: MaskedModel) -> None:
    asked = riddles(COUNT, 1)
    assert shares(trained, asked) == (1.0, 1.0)
    letterless = [Riddle(riddle.prefix, riddle.answer, (BAR,)) for riddle in asked]
    assert shares(trained, letterless)[1] < 3 * CHANCE
    absent = [Riddle(riddle.prefix, riddle.answer, ()) for riddle in asked]
    assert shares(trained, absent)[1] < 3 * CHANCE


def test_another_suffix_gives_another_answer(trained: MaskedModel) -> None:
    asked, others = riddles(COUNT, 1), riddles(COUNT, 2)
    crossed = [Riddle(one.prefix, one.answer, other.suffix) for one, other in zip(asked, others, strict=True)]
    found = torch.stack([one_pass(trained, riddle, riddle.suffix) for riddle in crossed])
    expected = torch.tensor([one.answer[:HALF] + other.answer[HALF:] for one, other in zip(asked, others, strict=True)])
    assert torch.equal(found, expected)


def test_the_wrong_shift_ruins_the_answer(trained: MaskedModel) -> None:
    """A wrong flag is the mistake that shows as fluent nonsense: it must not go unnoticed here."""
    other = wrap(trained.network, LAYOUTS["a2d-mdlm" if trained.layout.shift else "dream"])
    assert sum(shares(other, riddles(COUNT, 1))) < 1.0


def test_the_dual_cache_knows_the_answer_too(trained: MaskedModel) -> None:
    """Steps on stale caches, and canvases of several lengths of which one is right: its answer comes out."""
    for riddle in riddles(5, 3):
        context = trained.open(Known(riddle.prefix, riddle.suffix))
        canvas = masks(len(riddle.answer))
        for place in range(len(riddle.answer)):
            logits = trained.step(context, [StepInput(canvas)])[0].logits
            ids = canvas.ids.clone()
            ids[place] = logits[place].masked_fill(trained.facts.forbidden, -torch.inf).argmax()
            canvas = canvas.rewritten(ids)
        assert tuple(canvas.ids.tolist()) == riddle.answer
        assert MASK not in canvas.ids.tolist()
        trained.close(context)
