"""Draft sources: what they offer and how they line up again after the model departs from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.drafts import Leftover, NgramLookup, WarmStart


def test_warm_start_offers_the_present_text_from_its_beginning() -> None:
    assert WarmStart([1, 2, 3, 4]).offer([], 3) == (1, 2, 3)


def test_warm_start_goes_on_where_the_settled_text_stands() -> None:
    warm = WarmStart([1, 2, 3, 4, 5])
    warm.offer([], 5)
    assert warm.offer([1, 2, 3], 5) == (4, 5)


@pytest.mark.parametrize(
    ("settled", "expected"),
    [
        pytest.param([1, 2, 99], (4, 5, 6), id="substitution"),
        pytest.param([1, 2, 4], (5, 6), id="deletion"),
        pytest.param([1, 2, 99, 3], (4, 5, 6), id="insertion, seen once the old text goes on"),
        pytest.param([9, 9, 9, 3, 4], (5, 6), id="a longer match beats a nearer one"),
    ],
)
def test_warm_start_realigns_after_a_mismatch(settled: list[int], expected: tuple[int, ...]) -> None:
    warm = WarmStart([1, 2, 3, 4, 5, 6])
    for end in range(len(settled) + 1):
        offered = warm.offer(settled[:end], 8)
    assert offered == expected


def test_warm_start_is_empty_behind_its_end_and_without_text() -> None:
    assert WarmStart([]).offer([], 4) == ()
    warm = WarmStart([1])
    assert warm.offer([1, 2, 3], 4) == ()


def test_lookup_offers_what_followed_the_longest_known_tail() -> None:
    lookup = NgramLookup(shortest=2, longest=3)
    lookup.extend([5, 6, 7, 8, 1, 6, 7, 9, 2, 5, 6, 7])
    assert lookup.offer(2) == (8, 1)


def test_lookup_prefers_the_latest_of_equally_long_matches() -> None:
    lookup = NgramLookup(shortest=1, longest=1)
    lookup.extend([7, 1, 7, 2, 7])
    assert lookup.offer(1) == (2,)


def test_lookup_needs_its_shortest_run() -> None:
    lookup = NgramLookup(shortest=2, longest=4)
    lookup.extend([1, 2, 3, 1])
    assert lookup.offer(3) == ()


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 8))
def test_lookup_only_offers_runs_of_its_own_text(ids: list[int], width: int) -> None:
    lookup = NgramLookup(shortest=1, longest=3)
    lookup.extend(ids)
    offer = lookup.offer(width)
    runs = {tuple(ids[i : i + len(offer)]) for i in range(len(ids))}
    assert not offer or offer in runs
    assert len(offer) <= width


def test_masks_below_the_threshold_end_the_draft_and_nan_is_below() -> None:
    nan = float("nan")
    assert Leftover((1, 2, 3), (0.9, 0.3, 0.9)).confident_masks(0.5) == (1,)
    assert Leftover((1, 2), (nan, 0.9)).confident_masks(0.5) == ()
