"""Lengths worth trying, the calibration that compares them, and candidates denoised side by side."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.canvas import Canvas
from engine.diffusion.length import GapShape, LengthCalibration, candidate_lengths
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, Known
from tests.fakes.scripted_canvas import (
    ScriptedCanvasModel,
    denoised,
    gap,
    hole,
    island,
    peaked,
    scripted_facts,
    text_of,
)

FLAT = LengthCalibration(fast=0.0, slow=0.0, floor=1.0)


def test_the_present_length_and_the_lines_around_come_first() -> None:
    assert candidate_lengths(GapShape(present=10), 64, 3) == (7, 10, 14)
    assert candidate_lengths(GapShape(lines=(9, 12, 30), on_line=5), 64, 1) == (7,)
    assert candidate_lengths(GapShape(lines=(9, 12, 30), whole_lines=True), 64, 3) == (12, 24, 48)


def test_without_any_hint_every_size_is_tried() -> None:
    assert candidate_lengths(GapShape(), 64) == (4, 8, 16, 32, 64)
    assert candidate_lengths(GapShape(), 2) == (2,)


@given(
    st.builds(GapShape, st.integers(0, 90), st.lists(st.integers(1, 60)).map(tuple), st.integers(0, 40), st.booleans()),
    st.integers(1, 100),
    st.integers(1, 8),
)
def test_candidates_are_few_distinct_and_within_the_budget(shape: GapShape, most: int, count: int) -> None:
    lengths = candidate_lengths(shape, most, count)
    assert lengths == tuple(sorted(set(lengths)))
    assert 1 <= len(lengths) <= count
    assert all(1 <= length <= most for length in lengths)
    assert shape.present in lengths or not 1 <= shape.present <= most


def test_a_calibration_is_found_again_from_its_own_numbers() -> None:
    true = LengthCalibration(fast=0.5, fast_rate=1.2, slow=0.3, slow_rate=0.05, floor=0.2)
    samples = [(n, true.bias(n)) for n in range(1, 65)]
    found = LengthCalibration.fit(samples)
    assert max(abs(found.bias(n) - bias) for n, bias in samples) < 0.02
    flat = LengthCalibration.fit([(n, 0.6) for n in (1, 4, 9, 30)])
    assert all(flat.bias(n) == pytest.approx(0.6, abs=1e-3) for n in range(1, 64))


def test_a_calibration_comes_back_from_its_file(tmp_path: Path) -> None:
    record = LengthCalibration(slow_rate=0.03)
    record.save(tmp_path / "length.json")
    assert LengthCalibration.load(tmp_path / "length.json") == record
    for text in ("", "[]", '{"fast": "x"}', '{"slope": 1}', '{"floor": 0}', '{"fast": NaN}'):
        (tmp_path / "length.json").write_text(text)
        with pytest.raises(ValueError, match="calibration"):
            LengthCalibration.load(tmp_path / "length.json")
    with pytest.raises(ValueError, match="three"):
        LengthCalibration.fit([(1, 0.5), (2, 0.5)])


def test_no_number_is_no_confidence() -> None:
    assert LengthCalibration().score(4, math.nan) == 0
    assert LengthCalibration().score(32, 0.4) > LengthCalibration().score(1, 0.4)


def fits(text: str, sure: float = 9.0, unsure: float = 5.0) -> ScriptedCanvasModel:
    """Is surest of its tokens where the hole is just long enough for `text`."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        ids = (list(text.encode()) + [46] * canvas.length)[: canvas.length]
        return peaked(ids, sure if canvas.length == len(text) else unsure)

    return ScriptedCanvasModel(script, scripted_facts(calibration=FLAT))


@pytest.mark.parametrize("text", ["abc", "abcdef", "abcdefghijkl"])
def test_the_length_the_model_is_surest_of_wins(text: str) -> None:
    model = fits(text)
    _, result = denoised(model, gap(candidates=(3, 6, 12, 24)))
    assert text_of(result.parts[0]) == text
    assert [each.canvas.length for each in model.calls[0]] == [3, 6, 12, 24]


def test_losers_are_dropped_early() -> None:
    model = fits("abcdef", sure=6.0, unsure=1.0)
    denoised(model, gap(candidates=(5, 6, 7, 9, 12, 24)))
    assert [len(call) for call in model.calls][:4] == [6, 3, 2, 1]
    assert {len(call) for call in model.calls[4:]} <= {1}


def test_the_bias_of_a_model_for_short_gaps_is_taken_out() -> None:
    """Probabilities fall with the length, but less at the true one than the calibration expects."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        chance = {2: 0.80, 8: 0.60, 16: 0.30}[canvas.length]
        return peaked([97] * canvas.length, math.log(chance / (1 - chance) * 257))

    biased = LengthCalibration(fast=0.0, slow=0.9, slow_rate=0.1, floor=0.05)
    for calibration, length in ((FLAT, 2), (biased, 8)):
        model = ScriptedCanvasModel(script, scripted_facts(calibration=calibration))
        _, result = denoised(model, gap(candidates=(2, 8, 16)))
        assert len(result.parts[0]) == length


def test_lengths_of_several_holes_are_found_one_after_another() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        cut = canvas.ids.tolist().index(45)
        right = canvas.length - cut - 2
        left_ids = (list(b"abcd") + [46] * 9)[:cut]
        right_ids = (list(b"xy") + [46] * 9)[:right]
        strengths = [9.0 if cut == 4 else 5.0] * cut + [0.0, 0.0] + [9.0 if right == 2 else 5.0] * right
        return peaked([*left_ids, 45, 45, *right_ids], strengths)

    job = CanvasJob(Known((1,), (2,)), (hole(candidates=(2, 4, 8)), island("--"), hole(candidates=(1, 2, 6))))
    model = ScriptedCanvasModel(script, scripted_facts(calibration=FLAT))
    steps, result = denoised(model, job)
    assert [text_of(part) for part in result.parts] == ["abcd", "xy"]
    assert len(steps) == result.steps


def test_candidates_beyond_the_budget_are_not_tried() -> None:
    model = fits("abc")
    denoised(model, gap(candidates=(3, 6, 12)), limits=Limits(6))
    assert [each.canvas.length for each in model.calls[0]] == [3, 6]
