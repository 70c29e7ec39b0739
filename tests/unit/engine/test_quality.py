"""The gates of a text's tokens: doubt, and a window of tokens that repeats itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.quality import Gates, MeanProbability, Verdict, faults, repetition

DISTINCT = [*range(100, 164)]


@pytest.mark.parametrize(
    ("ids", "share"),
    [
        ([], 0.0),
        (DISTINCT, 0.0),
        # Fewer than a window may be one token over and over: three blanks are no loop.
        ([7] * 31, 0.0),
        ([7] * 32, 28 / 29),
        ([1, 2] * 16, 27 / 29),
        ([*range(8)] * 4, 21 / 29),
        # The same line of eight tokens twice within a window, and once more outside of it.
        ([*range(8), *DISTINCT[:16], *range(8), *DISTINCT[:40]], 5 / 29),
        ([*range(8), *DISTINCT[:32], *range(8)], 0.0),
        ([*DISTINCT, *[5, 6] * 16, *DISTINCT], 27 / 29),
    ],
)
def test_the_share_of_a_window_that_stood_in_it_before(ids: list[int], share: float) -> None:
    assert repetition(ids, 32, 4) == pytest.approx(share)


@given(st.lists(st.integers(0, 5), max_size=120))
def test_repetition_is_that_of_the_worst_window(ids: list[int]) -> None:
    def of_window(window: list[int]) -> float:
        seen, again = set(), 0
        for at in range(len(window) - 3):
            run = tuple(window[at : at + 4])
            again += run in seen
            seen.add(run)
        return again / 29

    windows = [ids[at : at + 32] for at in range(len(ids) - 31)]
    assert repetition(ids, 32, 4) == pytest.approx(max(map(of_window, windows), default=0.0))


@pytest.mark.parametrize(
    ("confidence", "is_doubtful"),
    [(0.9, False), (0.25, False), (0.2, True), (0.0, True), (math.nan, True), (None, False)],
)
def test_a_text_the_model_doubts_is_told(confidence: float | None, is_doubtful: bool) -> None:
    assert [fault.gate for fault in faults([1, 2, 3], confidence)] == ["confidence"] * is_doubtful


def test_fifteen_percent_of_a_window_may_repeat() -> None:
    limit = Gates().most_repetition
    assert limit == 0.15
    four, five = ([*range(count), *DISTINCT[:12], *range(count), *DISTINCT[20:50]] for count in (9, 10))
    assert 4 / 27 < limit < 5 / 27
    assert faults(four, 0.9) == ()
    assert [fault.gate for fault in faults(five, 0.9)] == ["repetition"]


def test_all_faults_are_told_and_none_of_an_empty_text() -> None:
    told = Verdict(0.1, faults([7] * 40, 0.1))
    assert told.gates == ("confidence", "repetition")
    assert told.words == "confidence 0.10 is low; 96% of 32 tokens in a row repeat what stands before them"
    assert faults([], 0.0) == ()
    assert faults([7] * 40, math.nan, Gates.open()) == ()


def test_the_mean_of_probabilities() -> None:
    mean = MeanProbability()
    assert str(mean.value) == "None"
    mean.add([0.5])
    mean.add([1.0, 0.0])
    assert mean.value == pytest.approx(0.5)
    mean.add([math.nan])
    assert str(mean.value) == "nan"
