"""Draft sources: what they offer and how they line up again after the model departs from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.drafts import NgramLookup, WarmStart


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


def test_lookup_names_what_followed_the_longest_agreement_and_how_long_it_was() -> None:
    lookup = NgramLookup(2)
    lookup.extend([5, 6, 7, 8, 1, 6, 7, 9, 2, 5, 6, 7])
    assert lookup.following([]) == (8, 3)
    assert lookup.following([8]) == (1, 4)


def test_lookup_prefers_the_latest_of_equally_long_agreements() -> None:
    lookup = NgramLookup(1)
    lookup.extend([7, 1, 7, 2, 7])
    assert lookup.following([]) == (2, 1)


def test_lookup_needs_its_shortest_run() -> None:
    lookup = NgramLookup(2)
    lookup.extend([1, 2, 3, 1])
    assert lookup.following([]) is None
    assert lookup.following([2]) == (3, 2)


def test_lookup_counts_agreement_up_to_its_longest() -> None:
    lookup = NgramLookup(1, longest=3)
    lookup.extend([1, 2, 3, 4, 5, 9, 1, 2, 3, 4, 5])
    assert lookup.following([]) == (9, 3)


@given(st.lists(st.integers(0, 3), max_size=60), st.lists(st.integers(0, 3), max_size=5))
def test_lookup_names_a_token_that_really_followed_as_many_equal_ones(ids: list[int], draft: list[int]) -> None:
    lookup = NgramLookup(1)
    lookup.extend(ids)
    found = lookup.following(draft)
    if found is None:
        return
    token, agreement = found
    tail = [*ids[-12:], *draft][-agreement:]
    assert any(ids[i - agreement : i] == tail and ids[i] == token for i in range(agreement, len(ids)))
