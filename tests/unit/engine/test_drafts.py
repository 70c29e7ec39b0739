"""Repeats in the text: what followed the longest agreement."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.drafts import NgramLookup


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
