"""Which draft is offered: chances per place, the competition of sources, and which anchors get masks."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.competition import Competition, Draft
from engine.diffusion.confidence import NGRAM_KEPT, Experience, MaskConfidence, both, ngram_chance
from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.drafts import Leftover
from engine.diffusion.plan import MaskBlock, plan_masks
from engine.diffusion.verify_config import VerifyConfig

CONFIDENCE = MaskConfidence(scale=(1.0, 1.0), shift=(0.0, 0.0), gains=(0.5, 0.2))
END = 99


def competition(
    *, warm: tuple[int, ...] = (), searched: tuple[int, ...] = (), row_cost: float = 0.1, **changes: int
) -> Competition:
    config = VerifyConfig.from_mapping({"costs": CostCurve.linear(row_cost), **changes})
    return Competition.over(config, CONFIDENCE, warm, (searched,), frozenset({END}))


def tokens(draft: Draft) -> list[int]:
    return [candidate.token for candidate in draft]


def sources(draft: Draft) -> list[str]:
    return [candidate.source for candidate in draft]


def test_without_any_source_there_is_no_draft() -> None:
    assert competition().draft((), Leftover(), 8) == ()


def test_the_likeliest_source_wins_each_place() -> None:
    # The text says 3 followed 1 2; the masks are surer of something else, and then know nothing more.
    both_speak = competition(searched=(1, 2, 3, 4, 1, 2))
    sure = both_speak.draft((), Leftover((7,), (0.95,)), 8)
    unsure = both_speak.draft((), Leftover((7,), (0.05,)), 8)
    assert (tokens(sure)[0], sources(sure)[0]) == (7, "masks")
    assert (tokens(unsure)[:2], sources(unsure)[:2]) == ([3, 4], ["ngram", "ngram"])


def test_repeats_go_on_behind_what_a_mask_drafted() -> None:
    draft = competition(searched=(5, 6, 7, 8, 5), row_cost=0.02).draft((), Leftover((6,), (0.95,)), 8)
    assert tokens(draft)[:3] == [6, 7, 8]
    assert sources(draft)[:2] == ["masks", "ngram"]


def test_two_sources_with_one_token_are_surer_than_each() -> None:
    alone = competition(searched=(1, 2, 3, 1, 2)).draft((), Leftover(), 1)[0].chance
    agreed = competition(searched=(1, 2, 3, 1, 2)).draft((), Leftover((3,), (0.5,)), 1)[0].chance
    assert agreed == pytest.approx(both(alone, 0.5))
    assert agreed > max(alone, 0.5)


def test_the_present_text_is_left_once_the_draft_departs_from_it() -> None:
    drafted = competition(warm=(1, 2, 3), searched=()).draft((), Leftover((8,), (0.999,)), 8)
    assert tokens(drafted) == [8]
    followed = competition(warm=(1, 2, 3), searched=()).draft((), Leftover((1,), (0.9,)), 8)
    assert tokens(followed) == [1, 2, 3]


def test_a_draft_ends_where_it_no_longer_pays_and_behind_an_end() -> None:
    cheap = competition(warm=tuple(range(1, 60)), row_cost=0.01).draft((), Leftover(), 60)
    dear = competition(warm=tuple(range(1, 60)), row_cost=0.5).draft((), Leftover(), 60)
    assert len(dear) < len(cheap) <= VerifyConfig().width
    assert math.prod(candidate.chance for candidate in dear) > 0.5
    assert tokens(competition(warm=(1, END, 3)).draft((), Leftover(), 9)) == [1, END]


def test_there_is_never_more_draft_than_room() -> None:
    assert len(competition(warm=(1, 2, 3, 4)).draft((), Leftover(), 2)) == 2
    assert competition(warm=(1, 2)).draft((), Leftover(), 0) == ()
    assert competition(warm=(1, 2)).draft((), Leftover(), -1) == ()


def test_sources_that_are_off_or_not_trained_say_nothing() -> None:
    config = VerifyConfig(warm_start=False, ngram=False, masks=False)
    silent = Competition.over(config, CONFIDENCE, (1, 2), ((1, 2, 3, 1, 2),), frozenset())
    assert silent.draft((), Leftover((7,), (0.9,)), 8) == ()
    untrained = Competition.over(VerifyConfig(ngram=False), None, (), (), frozenset())
    assert untrained.draft((), Leftover((7,), (0.9,)), 8) == ()


def test_being_refused_makes_a_source_shorter_and_being_kept_longer() -> None:
    text = (*range(1, 60), 1, 2)
    source = competition(searched=text)
    fresh = source.draft((), Leftover(), 60)
    source.record(fresh, 0)
    humbled = source.draft((), Leftover(), 60)
    for _ in range(6):
        source.record(humbled, len(humbled))
    assert len(humbled) < len(fresh) < len(source.draft((), Leftover(), 60))


def test_the_present_text_and_the_look_up_that_reads_it_are_one_witness() -> None:
    text = tuple(range(1, 30))
    alone = competition(warm=text).draft((), Leftover(), 1)[0].chance
    source = competition(warm=text, searched=(*text, 90, 91))
    source.settle((1, 2, 3))
    agreed = source.draft((1, 2, 3), Leftover(), 1)[0]
    assert (agreed.token, agreed.source) == (4, "warm_start")
    assert agreed.chance == pytest.approx(competition(warm=text).draft((1, 2, 3), Leftover(), 1)[0].chance)
    assert agreed.chance > alone


def test_offers_and_keeps_are_counted_by_source() -> None:
    source = competition(searched=(5, 6, 7, 8, 5), ngram_min=2)
    draft = source.draft((), Leftover((6,), (0.95,)), 2)
    source.record(draft, 1)
    assert source.counts == {"masks": (1, 1), "ngram": (1, 0)}


@given(st.floats(0.001, 0.999), st.integers(0, 5))
def test_a_masks_chance_is_a_chance_and_grows_with_its_probability(probability: float, depth: int) -> None:
    learned = MaskConfidence(scale=(0.8, 0.6), shift=(0.1, -0.2), gains=(0.3,))
    low, high = learned.kept(depth, probability * 0.9), learned.kept(depth, probability)
    assert 0.0 < low <= high < 1.0


@pytest.mark.parametrize("probability", [0.0, -1.0, 1.5, float("nan")])
def test_what_is_no_probability_has_no_chance(probability: float) -> None:
    assert CONFIDENCE.kept(0, probability) == 0.0


def test_a_certain_mask_is_not_beyond_a_chance() -> None:
    assert 0.99 < CONFIDENCE.kept(0, 1.0) <= 1.0


@pytest.mark.parametrize(
    "numbers",
    [
        {"scale": (), "shift": ()},
        {"scale": (1.0,), "shift": (0.0, 1.0)},
        {"gains": ()},
        {"scale": (float("nan"),), "shift": (0.0,)},
        {"gains": (float("inf"),)},
    ],
)
def test_unsound_confidence_is_refused(numbers: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="mask confidence"):
        MaskConfidence(**numbers)


def test_longer_agreement_is_a_better_witness_and_the_longest_stands_for_all_beyond() -> None:
    assert all(a <= b for a, b in pairwise(NGRAM_KEPT))
    assert ngram_chance(50) == NGRAM_KEPT[-1]


def test_experience_moves_a_chance_and_never_makes_it_certain() -> None:
    known = Experience()
    assert known.chance(0.5) == 0.5
    known.record(100, refused=False)
    assert 0.9 < known.chance(0.5) < 1.0
    for _ in range(40):
        known.record(0, refused=True)
    assert known.chance(0.5) < 0.5


def test_masks_stand_where_the_pass_is_likely_to_end() -> None:
    assert plan_masks((), (0.5, 0.2), 0.1, 4) == (MaskBlock(0, 2),)
    assert plan_masks((0.95,), (0.5, 0.2), 0.1, 4) == (MaskBlock(1, 2),)
    assert plan_masks((0.5,), (0.5, 0.2), 0.15, 4) == (MaskBlock(0, 1), MaskBlock(1, 1))


def test_no_masks_where_rows_are_dear_and_never_more_blocks_than_asked() -> None:
    assert plan_masks((0.5, 0.5), (0.5, 0.2), 0.6, 4) == ()
    assert plan_masks((0.5, 0.5), (0.9,), 0.01, 1) == (MaskBlock(0, 1),)
    assert plan_masks((0.5,), (0.9,), 0.01, 0) == ()


@given(st.lists(st.floats(0, 1), max_size=32), st.lists(st.floats(0, 1), max_size=6), st.floats(0.01, 1))
def test_blocks_ascend_and_lie_behind_the_draft(chances: list[float], gains: list[float], row_cost: float) -> None:
    blocks = plan_masks(chances, gains, row_cost, 4)
    assert all(left.anchor < right.anchor for left, right in pairwise(blocks))
    assert all(0 <= block.anchor <= len(chances) and 1 <= block.width <= len(gains) for block in blocks)
