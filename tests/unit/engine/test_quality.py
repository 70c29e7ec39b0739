"""The gates: doubt, and a window of tokens that is one short run over and over."""

from __future__ import annotations

import math

import pytest

from engine.quality import Gates, faults, repeated_period


@pytest.mark.parametrize(
    ("ids", "period"),
    [
        ([], 0),
        ([7] * 31, 0),
        ([7] * 32, 1),
        ([1, 2] * 16, 2),
        ([9, 9, *[1, 2, 3] * 11, 4], 3),
        ([*range(40)], 0),
        ([1, 2] * 15 + [1, 3], 0),
        ([*range(9)] * 4, 0),
        ([*range(8)] * 4, 8),
        ([*range(20), *[5, 6] * 15, *range(20)], 0),
    ],
)
def test_only_a_whole_window_of_one_short_run_counts(ids: list[int], period: int) -> None:
    assert repeated_period(ids, 32, 8) == period


@pytest.mark.parametrize(
    ("confidence", "doubtful"), [(0.9, False), (0.25, False), (0.2, True), (0.0, True), (math.nan, True)]
)
def test_a_text_the_model_doubts_is_told(confidence: float, doubtful: bool) -> None:
    assert bool(faults([1, 2, 3], confidence)) is doubtful


def test_all_faults_are_told_and_none_of_an_empty_text() -> None:
    told = faults([7] * 40, 0.1)
    assert len(told) == 2
    assert "confidence 0.10" in told[0]
    assert "32 tokens in a row repeat one token" in told[1]
    assert faults([], 0.0) == ()
    assert faults([7] * 40, 0.1, Gates(least_confidence=0.0, window=64)) == ()
