"""The denoising loop on a tiny model: equal to plain greedy decoding whatever the drafts, and when it stops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
import torch

from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.denoise import Denoised, Gap, denoise, greedy
from engine.diffusion.plan import MaskBlock
from engine.diffusion.stopping import Limits
from engine.diffusion.verify import PassLayout, build_rows, judge
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.models.base import CanvasRows, Context, Denoiser
from engine.models.tiny import tiny_denoiser

PROMPTS = (
    "def f(x):\n    return ",
    "a b a b a b a b ",
    "for i in range(10):\n",
    "🙂 é\r\n",
    "x = [1, 2, 3]\ny = [1, 2,",
)


def open_gap(model: Denoiser, text: str) -> tuple[Context, int]:
    """A context holding `text`, and the pending token behind it."""
    ids = model.tokenizer.encode(text)
    context = model.context_for(ids)
    model.encode(context, ids[context.length :])
    return context, model.facts.special.fim_middle


def run(
    model: Denoiser, text: str, config: VerifyConfig, *, adapted: bool, warm: str = "", tokens: int = 24
) -> Denoised:
    context, pending = open_gap(model, text)
    ids = tuple(model.tokenizer.encode(text))
    gap = Gap(pending, adapted, tuple(model.tokenizer.encode(warm)), (ids,))
    passes = denoise(model, context, gap, Limits(tokens), config, lambda: False)
    try:
        while True:
            next(passes)
    except StopIteration as finished:
        result: Denoised = finished.value
        return result
    finally:
        model.release(context)


def reference(model: Denoiser, text: str, *, adapted: bool, tokens: int = 24) -> bytes:
    context, pending = open_gap(model, text)
    ids = [token for token, _ in greedy(model, context, pending, tokens, adapted=adapted)]
    model.release(context)
    return model.tokenizer.decode_bytes([token for token in ids if token not in model.facts.special.special])


SWITCHES = list(itertools.product((False, True), repeat=3))


@pytest.mark.parametrize(("warm_start", "ngram", "masks"), SWITCHES)
@pytest.mark.parametrize("row_cost", [0.0, 0.08])
def test_text_equals_greedy_with_every_mix_of_draft_sources(
    warm_start: bool, ngram: bool, masks: bool, row_cost: float
) -> None:
    model = tiny_denoiser(seed=3)
    config = VerifyConfig(
        warm_start=warm_start, ngram=ngram, masks=masks, ngram_min=1, costs=CostCurve.linear(row_cost)
    )
    for text, adapted in itertools.product(PROMPTS, (False, True)):
        expected = reference(model, text, adapted=adapted)
        warm = expected.decode("utf-8", "ignore")[:4] + "zz" + text
        result = run(model, text, config, adapted=adapted, warm=warm)
        assert result.text == expected.decode("utf-8", "ignore")[: len(result.text)]
        assert result.tokens == 24 or result.stop == "end"


def test_a_right_draft_settles_many_tokens_in_few_passes() -> None:
    model = tiny_denoiser(seed=5)
    context, pending = open_gap(model, "abc")
    ids = [token for token, _ in greedy(model, context, pending, 24, adapted=True)]
    model.release(context)
    context, pending = open_gap(model, "abc")
    gap = Gap(pending, adapted=True, warm=tuple(ids))
    passes = list(denoise(model, context, gap, Limits(24), VerifyConfig(masks=False), lambda: False))
    assert len(passes) < len(ids) // 3


def test_settled_tokens_never_change_between_canvases() -> None:
    model = tiny_denoiser(seed=1)
    context, pending = open_gap(model, "x = ")
    gap = Gap(pending, adapted=True, warm=tuple(model.tokenizer.encode("y = 1")))
    seen: tuple[int, ...] = ()
    for canvas in denoise(model, context, gap, Limits(32), VerifyConfig(costs=CostCurve.linear(0.0)), lambda: False):
        assert canvas.settled_ids[: len(seen)] == seen
        assert len(canvas.settled_ids) > len(seen)
        seen = canvas.settled_ids


class Scripted:
    """A model that says a given text and then its end token, one row at a time; everything else is tiny's."""

    def __init__(self, text: str) -> None:
        self._inner = tiny_denoiser()
        self.facts = self._inner.facts
        self.tokenizer = self._inner.tokenizer
        self._script = [*self.tokenizer.encode(text), min(self.facts.special.end)]
        self.steps = 0

    def context_for(self, ids: Sequence[int]) -> Context:
        return self._inner.context_for(ids)

    def spare_context_for(self, ids: Sequence[int]) -> Context | None:
        return self._inner.spare_context_for(ids)

    def release(self, context: Context) -> None:
        self._inner.release(context)

    def encode(self, context: Context, ids: Sequence[int]) -> None:
        self._inner.encode(context, ids)

    def step(self, context: Context, rows: CanvasRows) -> torch.Tensor:
        self.steps += 1
        logits = torch.zeros(self._inner.step(context, rows).shape)
        for row, position in enumerate(rows.positions.tolist()):
            logits[row, self._script[min(position - 1, len(self._script) - 1)]] = 9.0
        return logits


def drive(text: str, limits: Limits, expired: Iterator[bool] | None = None) -> tuple[Denoised, int]:
    model = Scripted(text)
    context = model.context_for([1])
    model.encode(context, [1])
    answers = expired or itertools.repeat(False)
    passes = denoise(model, context, Gap(model.facts.special.fim_middle, False), limits, CAUSAL, lambda: next(answers))
    try:
        while True:
            next(passes)
    except StopIteration as finished:
        return finished.value, model.steps


@pytest.mark.parametrize(
    ("script", "limits", "text", "stop"),
    [
        ("x = 1", Limits(99), "x = 1", "end"),
        ("x = 1\ny = 2\n", Limits(99, max_lines=1), "x = 1", "lines"),
        ("x = 1\n```\nSure", Limits(99, stop_text="\n```"), "x = 1", "end"),
        ("abcdef", Limits(3), "abc", "budget"),
        ("ab🙂", Limits(4), "ab", "budget"),
        ("", Limits(9), "", "end"),
    ],
)
def test_what_ends_a_gap(script: str, limits: Limits, text: str, stop: str) -> None:
    result, _ = drive(script, limits)
    assert (result.text, result.stop) == (text, stop)


def test_the_deadline_returns_what_is_settled() -> None:
    result, steps = drive("abcdef", Limits(99), iter([False, False, True]))
    assert (result.text, result.stop, steps) == ("abc", "deadline", 3)


def test_masks_do_not_change_what_causal_rows_say() -> None:
    model = tiny_denoiser(seed=2)
    ids = model.tokenizer.encode("print(")
    context = model.context_for(ids)
    model.encode(context, ids)
    base = context.length
    draft = tuple(model.tokenizer.encode("abc"))
    plain = model.step(context, build_rows(PassLayout(5, draft), base, -1, adapted=True))
    context.truncate(base)
    masked = model.step(
        context, build_rows(PassLayout(5, draft, (MaskBlock(0, 2), MaskBlock(2, 3))), base, -1, adapted=True)
    )
    assert torch.equal(plain.argmax(-1), masked[: 1 + len(draft)].argmax(-1))
    assert torch.allclose(plain, masked[: 1 + len(draft)], atol=1e-5)


def test_judge_accepts_the_matching_prefix_and_takes_the_block_behind_it() -> None:
    layout = PassLayout(pending=0, draft=(1, 2, 3), blocks=(MaskBlock(0, 1), MaskBlock(2, 2)))
    logits = torch.zeros(7, 10)
    for row, token in enumerate((1, 2, 7, 8, 4, 5, 6)):
        logits[row, token] = 10.0
    outcome = judge(layout, logits)
    assert (outcome.accepted, outcome.bonus) == (2, 7)
    assert outcome.leftover.masks == (5, 6)
    assert all(probability > 0.99 for probability in outcome.leftover.probabilities)


def test_judge_leaves_nothing_over_where_no_masks_stood() -> None:
    layout = PassLayout(pending=0, draft=(1, 2), blocks=(MaskBlock(2, 1),))
    logits = torch.zeros(4, 10)
    logits[0, 5] = 10.0
    assert judge(layout, logits).leftover.masks == ()


def test_a_mask_sees_the_draft_up_to_its_anchor_and_its_own_block() -> None:
    rows = build_rows(PassLayout(7, (8, 9), (MaskBlock(1, 2),)), 10, -1, adapted=True)
    assert rows.ids.tolist() == [7, 8, 9, -1, -1]
    assert rows.positions.tolist() == [10, 11, 12, 12, 13]
    assert rows.visible is not None
    assert rows.visible.int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 1],
        [1, 1, 0, 1, 1],
    ]
