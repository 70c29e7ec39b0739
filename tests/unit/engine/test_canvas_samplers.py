"""Acceptance rules by hand-made readings, and which places self-correction re-opens."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from engine.diffusion import reading as reading_module
from engine.diffusion.drawing import Choice, inverted, nucleus
from engine.diffusion.reading import Places, Reading, Scratch, on_host, read
from engine.diffusion.samplers import Sampler, accept, sampler_of
from engine.diffusion.samplers.confidence import Confidence
from engine.diffusion.samplers.entropy_bound import EntropyBound
from engine.diffusion.samplers.remask import Progress, edited, reopened
from engine.diffusion.sampling import Draws, RemaskStrategy, SamplingConfig

NAN = math.nan


def reading(
    confidence: list[float] | None = None,
    entropy: list[float] | None = None,
    present: list[float] | None = None,
    likeliest: list[int] | None = None,
) -> Reading:
    n = len(confidence or entropy or present or [])
    chances = torch.tensor(confidence or [0.5] * n)
    ids = torch.tensor(likeliest or list(range(n)))
    there = torch.tensor(present or [0.0] * n)
    return Reading(ids, ids, chances, chances, there, torch.tensor(entropy or [1.0] * n))


def read_alone(logits: torch.Tensor, ids: torch.Tensor, choice: Choice, generator: torch.Generator) -> Reading:
    return read(logits, Places(None, ids, lambda held, start: None), choice, generator, Scratch())


def accepted(sampler: Sampler, seen: Reading, due: int = 1, *, exactly: bool = False) -> list[int]:
    everywhere = torch.ones(seen.entropy.shape[0], dtype=torch.bool)
    places: list[int] = accept(sampler, seen, everywhere, due, exactly=exactly).nonzero().squeeze(-1).tolist()
    return places


def test_the_entropy_bound_takes_the_surest_places_until_the_bound() -> None:
    # Ascending: 0.02, 0.05, 0.2, 0.3; what comes before each: 0, 0.02, 0.07, 0.27.
    seen = reading(entropy=[0.3, 0.02, 0.2, 0.05])
    assert accepted(EntropyBound(0.1), seen) == [1, 2, 3]
    assert accepted(EntropyBound(0.3), seen) == [0, 1, 2, 3]
    assert accepted(EntropyBound(0.01), seen) == [1]


def test_a_place_is_accepted_however_low_the_bound() -> None:
    assert accepted(EntropyBound(0.0), reading(entropy=[5.0, 4.0, 6.0])) == [1]


@pytest.mark.parametrize("name", ["entropy_bound", "confidence", "remask"])
def test_the_surest_place_comes_first_with_the_right_sign(name: str) -> None:
    sharp, flat = torch.zeros(8), torch.zeros(8)
    sharp[3] = 9.0
    seen = read_alone(torch.stack([flat, sharp]), torch.tensor([0, 0]), Choice(1.0, True, 1.0), torch.Generator())
    assert seen.entropy[0] == pytest.approx(math.log(8), abs=1e-5)
    assert 0 <= seen.entropy[1] < 0.05
    sampler = sampler_of(SamplingConfig.from_mapping({"sampler": name, "remask": "cap"}))
    assert accepted(sampler, seen, 1, exactly=True) == [1]


def test_confidence_by_threshold_is_strict_and_takes_at_least_one() -> None:
    seen = reading(confidence=[0.9, 0.95, 0.2])
    assert accepted(Confidence(0.9), seen) == [1]
    assert accepted(Confidence(0.96), seen) == [1]
    assert accepted(Confidence(0.1), seen) == [0, 1, 2]


def test_the_factor_takes_the_largest_number_whose_last_one_is_sure_enough() -> None:
    # The bars 1 - 1 / (n + 1) are 0.5, 0.667, 0.75, 0.8 for 0.99, 0.74, 0.7, 0.3.
    seen = reading(confidence=[0.99, 0.7, 0.74, 0.3])
    assert accepted(Confidence(1.0, factor=1.0), seen) == [0, 2]
    assert accepted(Confidence(1.0, factor=0.1), seen) == [0]
    assert accepted(Confidence(1.0, factor=0.001), reading(confidence=[0.9, 0.8])) == [0]


def test_top_n_takes_just_so_many() -> None:
    seen = reading(confidence=[0.99, 0.98, 0.97, 0.1])
    assert accepted(Confidence(0.5, top_n=2), seen) == [0, 1]


def test_a_schedule_that_counts_is_followed_to_the_number() -> None:
    seen = reading(confidence=[0.99, 0.98, 0.97, 0.1])
    assert accepted(Confidence(0.5), seen, 1, exactly=True) == [0]
    assert accepted(Confidence(0.5), seen, 4, exactly=True) == [0, 1, 2, 3]


@given(st.lists(st.sampled_from([0.0, 0.3, 0.95, 1.0, NAN]), min_size=1, max_size=12), st.integers(0, 12))
def test_nan_sorts_last_and_is_never_accepted(values: list[float], due: int) -> None:
    usable = [place for place, value in enumerate(values) if not math.isnan(value)]
    rules: list[Sampler] = [EntropyBound(10.0), Confidence(0.0), Confidence(0.5, factor=2.0), Confidence(0.5, top_n=9)]
    for sampler in rules:
        for exactly in (False, True):
            places = accepted(sampler, reading(confidence=values, entropy=values), due, exactly=exactly)
            assert set(places) <= set(usable)
            assert len(places) >= min(due, len(usable))


def test_logits_that_are_no_numbers_read_as_nan_and_draw_something() -> None:
    logits = torch.zeros(3, 6)
    logits[0, 2], logits[1] = NAN, -math.inf
    for choice in (Choice(1.0, False, 1.0), Choice(0.7, False, 0.9), Choice(0.0, True, 1.0)):
        seen = read_alone(logits.clone(), torch.zeros(3, dtype=torch.int64), choice, torch.Generator().manual_seed(0))
        assert seen.confidence.isnan().tolist() == [True, True, False]
        assert seen.entropy.isnan().tolist() == [True, True, False]


def test_an_id_that_is_ruled_out_leaves_the_entropy_finite() -> None:
    logits = torch.full((1, 4), -math.inf)
    logits[0, 1] = 0.0
    seen = read_alone(logits, torch.tensor([1]), Choice(0.5, False, 1.0), torch.Generator().manual_seed(0))
    assert (seen.entropy.tolist(), seen.chosen.tolist(), seen.present.tolist()) == ([0.0], [1], [1.0])


@pytest.mark.parametrize("vocab", [128, 100])
@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
def test_a_reading_is_what_torch_s_own_distribution_says(vocab: int, scale: float) -> None:
    logits = torch.randn(50, vocab, generator=torch.Generator().manual_seed(4)) * scale
    logits[:, ::7] = -math.inf
    ids = torch.arange(50)
    seen = read_alone(logits.clone(), ids, Choice(0.7, True, 1.0), torch.Generator())
    # In float64: in float32 the distribution's own rounding is larger than the difference.
    wanted: Any = torch.distributions.Categorical(logits=logits.double() / 0.7)
    assert torch.equal(seen.likeliest, logits.argmax(dim=-1))
    for found, exact in ((seen.entropy, wanted.entropy()), (seen.best, wanted.probs.max(dim=-1).values)):
        torch.testing.assert_close(found, exact.float(), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(seen.present, wanted.probs[ids, ids].float(), atol=1e-6, rtol=1e-4)


def test_multinomial_draws_are_torch_s_own() -> None:
    logits = torch.randn(40, 192, generator=torch.Generator().manual_seed(5))
    ids, first, second = torch.zeros(40, dtype=torch.int64), torch.Generator(), torch.Generator()
    drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=first.manual_seed(6)).squeeze(-1)
    seen = read_alone(logits.clone(), ids, Choice(1.0, False, 1.0, "multinomial"), second.manual_seed(6))
    assert torch.equal(seen.chosen, drawn)
    assert torch.equal(torch.rand(3, generator=first), torch.rand(3, generator=second))


@pytest.mark.parametrize("draws", ["multinomial", "inverse"])
def test_tokens_are_drawn_as_often_as_they_are_likely(draws: Draws) -> None:
    chances = torch.tensor([0.0, 0.6, 0.3, 0.1, 0.0])
    choice = Choice(1.0, False, 1.0, draws)
    ids = torch.zeros(4000, dtype=torch.int64)
    seen = read_alone(chances.log().repeat(4000, 1), ids, choice, torch.Generator().manual_seed(3))
    shares = torch.bincount(seen.chosen, minlength=5) / 4000
    assert shares.tolist() == pytest.approx(chances.tolist(), abs=0.03)
    assert seen.confidence.tolist() == pytest.approx(chances[seen.chosen].tolist(), abs=1e-6)


def test_top_p_never_draws_from_the_tail_and_leaves_the_probabilities_alone() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]])).repeat(200, 1)
    ids = torch.zeros(200, dtype=torch.int64)
    seen = read_alone(logits.clone(), ids, Choice(1.0, False, 0.7), torch.Generator().manual_seed(1))
    assert set(seen.chosen.tolist()) == {0, 1}
    assert sorted(set(seen.confidence.tolist())) == [pytest.approx(0.3), pytest.approx(0.5)]
    everything = read_alone(logits.clone(), ids, Choice(1.0, False, 1.0), torch.Generator().manual_seed(1))
    assert set(everything.chosen.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("vocab", [128, 100])
def test_draws_of_a_nucleus_are_of_the_sorted_one(vocab: int, top_p: float) -> None:
    logits = torch.randn(1, vocab, generator=torch.Generator().manual_seed(7)) * 2
    wanted = nucleus(logits.softmax(dim=-1), top_p)
    many, ids = logits.repeat(20_000, 1), torch.zeros(20_000, dtype=torch.int64)
    seen = read_alone(many, ids, Choice(1.0, False, top_p), torch.Generator().manual_seed(1))
    shares = torch.bincount(seen.chosen, minlength=vocab) / 20_000
    assert not shares[wanted[0] == 0].any()
    torch.testing.assert_close(shares, wanted[0] / wanted.sum(), atol=0.015, rtol=0)


@pytest.mark.parametrize("vocab", [64, 100, 4096])
def test_a_draw_is_where_its_number_falls_in_the_running_sum(vocab: int) -> None:
    probs = torch.randn(300, vocab, generator=torch.Generator().manual_seed(2)).mul(3).softmax(dim=-1)
    dice = torch.rand(300, generator=torch.Generator().manual_seed(3))
    sums = probs.double().cumsum(dim=-1)
    found = inverted(probs, dice)
    above = sums.gather(-1, found[:, None]).squeeze(-1)
    below = above - probs.gather(-1, found[:, None]).squeeze(-1).double()
    assert bool(((below - 1e-5 <= dice) & (dice <= above + 1e-5)).all())
    assert (inverted(probs, torch.zeros(300)) == 0).all()


@pytest.mark.parametrize("choice", [Choice(0.7, False, 1.0), Choice(0.7, False, 0.8), Choice(0.0, True, 1.0, others=3)])
def test_rows_read_a_few_at_a_time_read_as_all_at_once(monkeypatch: pytest.MonkeyPatch, choice: Choice) -> None:
    logits = torch.randn(23, 192, generator=torch.Generator().manual_seed(4)) * 3
    ids, rows = torch.arange(9), torch.arange(1, 19, 2)
    found = []

    def forbid(held: torch.Tensor, start: int) -> None:
        places = torch.arange(held.shape[0])
        held[places, 100 + start + places] = -math.inf

    for values in (192, 5 * 192, 1 << 20):
        monkeypatch.setattr(reading_module, "_VALUES_AT_ONCE", values)
        found.append(read(logits, Places(rows, ids, forbid), choice, torch.Generator().manual_seed(6), Scratch()))
    for other in found[:2]:
        for name in ("likeliest", "best", "present", "entropy"):
            torch.testing.assert_close(getattr(other, name), getattr(found[2], name))
        if choice.top_p == 1.0:  # a second try of a nucleus draws in between
            assert torch.equal(other.chosen, found[2].chosen)
    if choice.others:
        assert found[0].others is not None
        assert found[0].others.ids.shape == (9, 3)
        assert torch.equal(found[0].others.ids[:, 0], found[0].likeliest)


def test_a_reading_comes_to_the_host_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = reading(confidence=[0.25, NAN, 1e-30], entropy=[0.5, 2.0, NAN], present=[0.1, 0.2, 0.3])
    seen = replace(seen, likeliest=torch.tensor([0, 262_143, 7]))
    monkeypatch.setattr(reading_module, "is_on_host", lambda tensor: False)
    with Transfers() as transfers:
        back = on_host(seen)
    assert transfers.count == 1
    for name in ("likeliest", "chosen", "best", "confidence", "present", "entropy"):
        torch.testing.assert_close(getattr(back, name), getattr(seen, name), rtol=0, atol=0, equal_nan=True)


class Transfers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts copies from a device to another."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.count += func.overloadpacket is torch.ops.aten._to_copy and "device" in kwargs
        return func(*args, **kwargs)


def test_the_probability_of_the_present_token_decides_what_is_re_opened() -> None:
    # The likeliest token is very sure at the first place, but another one stands there.
    seen = reading(confidence=[0.99, 0.6, 0.6], present=[0.01, 0.6, 0.58])
    settled = torch.tensor([True, True, True])
    dice = torch.Generator().manual_seed(0)
    for strategy in ("cap", "rescale"):
        for _ in range(20):
            again = reopened(_strategy(strategy), 0.5, seen, settled, Progress(0.5, 0.6), dice)
            assert not bool(again.any()) or bool(again[0])


def _strategy(name: str) -> RemaskStrategy:
    strategies: dict[str, RemaskStrategy] = {"cap": "cap", "rescale": "rescale", "confidence": "confidence"}
    return strategies[name]


@pytest.mark.parametrize(("strategy", "share"), [("cap", 0.3), ("rescale", 0.3 * 0.5), ("confidence", 0.3 * 0.5)])
def test_as_many_are_re_opened_as_the_strategy_says(strategy: str, share: float) -> None:
    # Progress from 0.8 to 0.6 of the places left: the most that may be re-opened is (1 - 0.6) / 0.8 = 0.5.
    count, rounds = 100, 60
    seen = reading(present=[0.5] * count)
    settled, dice = torch.ones(count, dtype=torch.bool), torch.Generator().manual_seed(2)
    total = sum(
        int(reopened(_strategy(strategy), 0.3, seen, settled, Progress(0.8, 0.6), dice).sum()) for _ in range(rounds)
    )
    assert total / (count * rounds) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("strategy", ["cap", "rescale", "confidence"])
def test_nothing_is_re_opened_in_the_last_step_nor_where_nothing_is_settled(strategy: str) -> None:
    seen, dice = reading(present=[0.1, 0.1]), torch.Generator().manual_seed(0)
    both, none = torch.tensor([True, True]), torch.tensor([False, False])
    assert not reopened(_strategy(strategy), 1.0, seen, both, Progress(0.5, 1.0), dice).any()
    assert not reopened(_strategy(strategy), 1.0, seen, none, Progress(0.5, 0.6), dice).any()


def test_the_confidence_strategy_prefers_what_is_improbable() -> None:
    seen, dice = reading(present=[0.01] * 5 + [0.99] * 5), torch.Generator().manual_seed(0)
    settled = torch.ones(10, dtype=torch.bool)
    hits = sum(reopened("confidence", 0.5, seen, settled, Progress(0.5, 0.6), dice).int() for _ in range(300))
    assert isinstance(hits, torch.Tensor)
    assert int(hits[:5].sum()) > 2 * int(hits[5:].sum())


def test_an_edit_needs_another_token_that_is_likely_enough() -> None:
    seen = reading(confidence=[0.95, 0.95, 0.6, NAN], likeliest=[7, 8, 9, 9])
    ids, settled = torch.tensor([1, 8, 1, 1]), torch.tensor([True] * 4)
    assert edited(0.9, seen, settled, ids).tolist() == [True, False, False, False]
    assert edited(0.5, seen, settled & torch.tensor([False, True, True, True]), ids).tolist() == [
        *(False, False, True, False)
    ]


def test_what_may_stay_is_judged_by_its_own_probability() -> None:
    seen = reading(confidence=[0.99, 0.95, 0.9], present=[0.01, 0.95, 0.2], entropy=[0.01, 0.02, 0.03])
    assert Confidence(0.9).trusts(seen).tolist() == [False, True, False]
    assert EntropyBound(0.5).trusts(seen).tolist() == [False, True, False]
