"""Drafts from the present text: how they line up again behind a change, and which edits they repeat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.warm_start import Expected, WarmStart


def tokens(offered: tuple[Expected, ...]) -> tuple[int, ...]:
    return tuple(expected.token for expected in offered)


def offers(present: tuple[int, ...], settled: tuple[int, ...], width: int = 8) -> list[tuple[Expected, ...]]:
    """What is offered behind each prefix of the settled text, one token after another."""
    warm = WarmStart(present)
    return [warm.offer(settled[:end], width) for end in range(len(settled) + 1)]


def test_the_present_text_is_offered_from_its_beginning() -> None:
    assert tokens(WarmStart((1, 2, 3, 4)).offer((), 3)) == (1, 2, 3)


def test_it_goes_on_where_the_settled_text_stands() -> None:
    warm = WarmStart((1, 2, 3, 4, 5))
    warm.offer((), 5)
    assert tokens(warm.offer((1, 2, 3), 5)) == (4, 5)


@pytest.mark.parametrize(
    ("settled", "expected"),
    [
        pytest.param((1, 2, 99), (4, 5, 6), id="substitution"),
        pytest.param((1, 2, 4), (5, 6), id="deletion"),
        pytest.param((1, 2, 99, 3), (4, 5, 6), id="insertion, seen once the old text goes on"),
        pytest.param((9, 9, 9, 3, 4), (5, 6), id="several tokens in front"),
        pytest.param((1, 2, *range(50, 90), 3), (4, 5, 6), id="an insertion longer than the search goes back"),
    ],
)
def test_it_lines_up_again_behind_a_change(settled: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert tokens(offers((1, 2, 3, 4, 5, 6), settled)[-1]) == expected


def test_the_longer_agreement_beats_the_nearer_place() -> None:
    present = (1, 2, 3, 7, 8, 20, 21, 7, 9, 30)
    assert tokens(offers(present, (1, 2, 3, 50, 21, 7))[-1])[:2] == (9, 30)


def test_nothing_is_offered_behind_the_end_and_without_a_text() -> None:
    assert WarmStart(()).offer((), 4) == ()
    assert offers((1,), (1, 2, 3))[-1] == ()
    assert WarmStart((1, 2)).offer((), 0) == ()


def test_an_edit_made_once_is_offered_at_its_next_place() -> None:
    # 5 is renamed 55.
    present = (1, 5, 2, 3, 4, 5, 6, 7)
    offered = offers(present, (1, 55, 2, 3))[-1]
    assert tokens(offered) == (4, 55, 6, 7)
    assert offered[1].chance < offered[0].chance


def test_an_insertion_is_offered_behind_the_same_token_again() -> None:
    # Behind 5 comes 50, as when a name gets a suffix.
    present = (1, 5, 2, 3, 4, 5, 6, 7)
    assert tokens(offers(present, (1, 5, 50, 2, 3))[-1]) == (4, 5, 50, 6, 7)
    assert tokens(offers(present, (1, 5, 50, 2, 3, 4, 5))[-1]) == (50, 6, 7)


def test_an_edit_of_several_tokens_is_offered_whole_and_taken_in_pieces() -> None:
    present = (1, 5, 6, 2, 3, 4, 5, 6, 8)
    settled = (1, 70, 71, 72, 2, 3, 4)
    assert tokens(offers(present, settled)[-1]) == (70, 71, 72, 8)
    assert tokens(offers(present, (*settled, 70, 71))[-1])[0] == 72 or tokens(
        WarmStart(present).offer((*settled, 70, 71), 8)
    )


def test_an_edit_that_is_not_made_again_is_offered_no_more() -> None:
    present = (1, 5, 2, 3, 5, 4, 6, 5, 7, 8)
    kept_on = offers(present, (1, 55, 2, 3, 5, 4, 6))[-1]
    assert tokens(kept_on) == (5, 7, 8)


def test_an_edit_that_was_made_again_is_surer() -> None:
    present = (1, 5, 2, 3, 5, 4, 6, 5, 7, 8)
    once = offers(present, (1, 55, 2, 3))[-1]
    twice = offers(present, (1, 55, 2, 3, 55, 4, 6))[-1]
    assert tokens(once)[0] == tokens(twice)[0] == 55
    assert twice[0].chance > once[0].chance


def test_a_long_change_is_not_taken_for_an_edit_to_repeat() -> None:
    present = (1, 5, 2, 3, 4, 5, 6, 7)
    settled = (1, *range(60, 75), 2, 3)
    assert tokens(offers(present, settled)[-1]) == (4, 5, 6, 7)


def test_a_long_run_makes_the_next_token_surer_and_a_change_less_sure() -> None:
    present = tuple(range(1, 80))
    running = [offered[0].chance for offered in offers(present, present[:60])]
    assert running[0] < running[30] < running[60]
    departed = offers(present, (*present[:60], 99))[-1][0].chance
    lost = offers(present, (*present[:60], 99, 98, 97, 96))[-1][0].chance
    assert lost < departed < running[0]


@given(
    st.lists(st.integers(0, 4), max_size=40),
    st.lists(st.integers(0, 4), max_size=40),
    st.lists(st.integers(1, 6), max_size=40),
    st.integers(0, 9),
)
def test_whatever_is_settled_it_offers_tokens_with_chances_and_never_too_many(
    present: list[int], settled: list[int], strides: list[int], width: int
) -> None:
    """Settled in strides, as passes do: chances lie strictly between 0 and 1, places within the present text."""
    warm = WarmStart(tuple(present))
    end = 0
    for stride in [0, *strides]:
        end = min(end + stride, len(settled))
        offered = warm.offer(settled[:end], width)
        assert len(offered) <= width
        assert all(0 < expected.chance < 1 and 0 <= expected.after <= len(present) for expected in offered)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 20))
def test_a_text_that_does_not_change_is_offered_as_it_is(present: list[int], width: int) -> None:
    warm = WarmStart(tuple(present))
    for end in range(0, len(present), width):
        assert tokens(warm.offer(present[:end], width)) == tuple(present[end : end + width])
