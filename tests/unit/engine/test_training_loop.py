"""Whole runs on a tiny model: they learn, they go on where they stopped, and they end in an orderly way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.training.batches import GapSequence, TrainingGap
from engine.training.checkpoint import Standing, previous_path, read_checkpoint
from engine.training.held_out import score_gap, summarise
from engine.training.low_rank import LowRankTerms
from engine.training.metrics import read_lines
from engine.training.optimiser import DivergedError
from engine.training.run import Intervals, TrainingRun
from engine.training.run_folder import CHECKPOINT, METRICS
from engine.training.shards import TokenHole
from tests.fakes.tiny_training import (
    SETTINGS,
    fresh_terms,
    frozen_model,
    gap_sequence,
    random_holes,
    random_terms,
    reduced_head,
)

BASE = "c" * 64
NEVER = Intervals(report=math.inf, held_out=math.inf, checkpoint=math.inf)
HOLES = random_holes(7)


def after(steps: int) -> Callable[[Standing], bool]:
    return lambda standing: standing.step >= steps


def tiny_run(gguf: Path, folder: Path, holes: list[TokenHole] = HOLES, **options: Any) -> TrainingRun:
    """A run in `folder`, which is resumed where it holds a checkpoint."""
    folder.mkdir(exist_ok=True)
    model = frozen_model(gguf, options.pop("precision", "fp32"))
    settings = options.pop("settings", SETTINGS)
    gaps = gap_sequence(gguf, folder, holes, settings)
    held_out = [gaps[number] for number in range(len(holes))]
    gaps = options.pop("gaps", gaps)
    if (folder / CHECKPOINT).exists():
        options["reached"] = read_checkpoint(folder / CHECKPOINT, BASE)
    terms = options.pop("terms", None) or fresh_terms(model)
    return TrainingRun(folder, model, BASE, terms, gaps, held_out, reduced_head(model), settings, **options)


def test_a_run_learns_the_gaps_it_is_shown(tiny: Path, tmp_path: Path) -> None:
    run = tiny_run(tiny, tmp_path / "run", HOLES[:2])
    before = run.evaluate()
    run.train(after(150), NEVER)
    learnt = run.evaluate()
    # Two short random texts: guessing costs about five nats a token, knowing them by heart next to none.
    assert before["nll"] > 4
    assert learnt["nll"] < 0.5
    assert learnt["top1"] > 0.95
    assert learnt["tokens_per_pass"] > before["tokens_per_pass"] + 0.5


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_resumed_run_equals_one_that_never_stopped(tiny: Path, tmp_path: Path, precision: str) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    tiny_run(tiny, whole, precision=precision).train(after(7), NEVER)
    for steps in (2, 3, 7):
        # Other terms than the run's own: what a resumed run was given to start with must not matter.
        model = frozen_model(tiny, precision)
        tiny_run(tiny, parts, terms=random_terms(model, seed=0) if steps > 2 else None, precision=precision).train(
            after(steps), NEVER
        )
    left, right = (read_checkpoint(folder / CHECKPOINT, BASE) for folder in (whole, parts))
    assert (left.standing.step, left.standing.gap) == (right.standing.step, right.standing.gap) == (7, 14)
    for kind in ("parameters", "average", "first", "second"):
        ours, theirs = getattr(left, kind), getattr(right, kind)
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


class _Recorded:
    """Gaps that remember which of them were asked for."""

    def __init__(self, gaps: GapSequence) -> None:
        self._gaps = gaps
        self.asked: list[int] = []

    def __getitem__(self, number: int) -> TrainingGap:
        self.asked.append(number)
        return self._gaps[number]


def test_every_gap_comes_in_its_turn_over_all_resumptions(tiny: Path, tmp_path: Path) -> None:
    recorded = _Recorded(gap_sequence(tiny, tmp_path, HOLES))
    for steps in (2, 3, 6):
        tiny_run(tiny, tmp_path / "run", gaps=recorded).train(after(steps), NEVER)
    assert recorded.asked == list(range(12))


def test_evaluations_are_of_the_average(tiny: Path, tmp_path: Path) -> None:
    run = tiny_run(tiny, tmp_path / "run")
    run.train(after(3), NEVER)
    reached = read_checkpoint(tmp_path / "run" / CHECKPOINT, BASE)
    model = frozen_model(tiny)
    gaps = gap_sequence(tiny, tmp_path, HOLES)

    def scored(tensors: Any) -> float:
        terms = LowRankTerms(model.shape, tensors)
        return summarise([score_gap(model, terms, reduced_head(model), gaps[n]) for n in range(len(HOLES))])["nll"]

    reported = read_lines(tmp_path / "run" / METRICS)[-1]["nll"]
    assert reported == pytest.approx(scored(reached.average), abs=2e-5)
    assert reported != pytest.approx(scored(reached.parameters), abs=1e-3)


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that is `seconds` further each time it is asked."""
    ticks: Iterator[float] = count(0.0, seconds)
    return lambda: next(ticks)


def test_reports_evaluations_and_checkpoints_come_when_due(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = tiny_run(tiny, folder, clock=ticking(10), spent=ticking(10))
    run.train(after(6), Intervals(report=20, held_out=30, checkpoint=40))
    lines = read_lines(folder / METRICS)
    assert [line["step"] for line in lines if line["kind"] == "train"] == [2, 4, 6]
    assert [line["step"] for line in lines if line["kind"] == "held_out"] == [0, 3, 6, 6]
    assert [line["gaps"] for line in lines if line["kind"] == "train"] == [4, 4, 4]
    # One when due, and one at the end.
    assert read_checkpoint(previous_path(folder / CHECKPOINT), BASE).standing == Standing(4, 8, 40.0)
    assert run.standing == read_checkpoint(folder / CHECKPOINT, BASE).standing == Standing(6, 12, 60.0)


def test_time_is_counted_over_all_resumptions(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for steps in (2, 5):
        run = tiny_run(tiny, folder, clock=ticking(10), spent=ticking(10))
        run.train(after(steps), NEVER)
    assert run.standing == Standing(5, 10, 50.0)
    assert [line["step"] for line in read_lines(folder / METRICS) if line["kind"] == "held_out"] == [0, 2, 5]


def test_a_run_that_is_told_to_stop_saves_and_evaluates_no_more(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = tiny_run(tiny, folder)
    run.train(after(100), NEVER, stopped=lambda: run.standing.step >= 3)
    assert read_checkpoint(folder / CHECKPOINT, BASE).standing.step == 3
    assert [line["step"] for line in read_lines(folder / METRICS)] == [0]


def test_a_run_that_diverges_stops_and_leaves_its_checkpoint(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    tiny_run(tiny, folder).train(after(2), NEVER)
    before = (folder / CHECKPOINT).read_bytes()
    # One step at this rate throws the terms so far that the network's numbers overflow.
    wild = replace(SETTINGS, optimiser=replace(SETTINGS.optimiser, learning_rate=1e30, warm_up=0))
    run = tiny_run(tiny, folder, settings=wild)
    with pytest.raises(
        DivergedError, match=r"loss of a \w+ gap is not finite .*diverged.* smaller optimiser\.learning_rate"
    ):
        run.train(after(10), NEVER)
    assert (folder / CHECKPOINT).read_bytes() == before


def test_a_checkpoint_of_another_rank_is_refused(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    tiny_run(tiny, folder).train(after(1), NEVER)
    with pytest.raises(ValueError, match="run of another rank or model"):
        tiny_run(tiny, folder, terms=fresh_terms(frozen_model(tiny), rank=2))
    reached = read_checkpoint(folder / CHECKPOINT, BASE)
    fewer = {name: tensor for name, tensor in reached.parameters.items() if name != "mask_embedding"}
    with pytest.raises(ValueError, match="has other parameters"):
        tiny_run(tiny, tmp_path / "other", reached=replace(reached, parameters=fewer))
