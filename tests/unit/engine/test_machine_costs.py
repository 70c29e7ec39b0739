"""What passes cost here: measured until it is the same twice, kept, compared with ordinary passes, measured again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from engine.calibration import MOST_ROUNDS, ROWS, Measured, agrees, is_plausible, measure, measuring
from engine.core import EngineCore
from engine.machine_costs import OBSERVED, MachineCosts, TimedDenoiser
from engine.models.base import CanvasRows, Context, ModelFacts, Tokenizer
from engine.models.tiny import tiny_denoiser
from engine.protocol.messages import Fill
from engine.quality import Gates
from tests.fakes.clock import Clock
from tests.fakes.driving import drive

COSTS = ((1, 50.0), (4, 60.0), (8, 80.0), (16, 120.0))


class Machine:
    """A tiny model whose passes take scripted times: `ms(rows, how many passes of that width came before)`."""

    def __init__(self, ms: Callable[[int, int], float]) -> None:
        self._inner = tiny_denoiser()
        self._ms = ms
        self.clock = Clock()
        self.passes: list[int] = []

    @property
    def facts(self) -> ModelFacts:
        return self._inner.facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._inner.tokenizer

    def context_for(self, ids: Sequence[int]) -> Context:
        return self._inner.context_for(ids)

    def spare_context_for(self, ids: Sequence[int]) -> Context | None:
        return self._inner.spare_context_for(ids)

    def release(self, context: Context) -> None:
        self._inner.release(context)

    def encode(self, context: Context, ids: Sequence[int]) -> None:
        self._inner.encode(context, ids)

    def step(self, context: Context, rows: CanvasRows) -> torch.Tensor:
        count = rows.ids.shape[0]
        self.clock.now += self._ms(count, self.passes.count(count)) / 1000
        self.passes.append(count)
        return self._inner.step(context, rows)


def linear(rows: int, _: int) -> float:
    return 50.0 + 2 * rows


def at_start(machine: Machine, file: Path, threads: int = 1) -> MachineCosts:
    return MachineCosts.at_start(machine, file, threads, machine.clock)


def is_due(costs: MachineCosts) -> bool:
    """`due` as a call: mypy would take it for what an earlier assertion found it to be."""
    return costs.due


def observed(costs: MachineCosts, ms: float, passes: int = OBSERVED) -> MachineCosts:
    for _ in range(passes):
        costs.observe(1, ms)
    return costs


def test_a_quiet_machine_is_measured_in_two_rounds() -> None:
    machine = Machine(linear)
    measured = measure(machine, machine.clock)
    assert measured == Measured(tuple((rows, 50.0 + 2 * rows) for rows in ROWS), steady=True)
    assert sorted(machine.passes) == sorted(2 * ROWS)


def test_widths_are_measured_in_turn_and_not_always_behind_the_same_neighbour() -> None:
    machine = Machine(linear)
    measure(machine, machine.clock)
    assert tuple(machine.passes) == (*reversed(ROWS), *ROWS)


def test_a_width_is_measured_until_its_least_time_came_twice() -> None:
    """The first pass of eight rows is slow, as a first one often is; of no other width a third pass is needed."""
    machine = Machine(lambda rows, before: linear(rows, 0) * (2 if rows == 8 and before == 0 else 1))
    measured = measure(machine, machine.clock)
    assert measured.steady
    assert dict(measured.forward_ms)[8] == 66.0
    assert {rows: machine.passes.count(rows) for rows in ROWS} == {**dict.fromkeys(ROWS, 2), 8: 3}


def test_a_machine_that_slows_down_and_recovers_gives_the_same_costs_as_a_quiet_one() -> None:
    busy = Machine(lambda rows, before: linear(rows, 0) * (3 if before in (0, 2) else 1))
    quiet = Machine(linear)
    assert measure(busy, busy.clock) == measure(quiet, quiet.clock)


def test_times_that_never_agree_are_given_back_as_not_steady() -> None:
    machine = Machine(lambda rows, before: linear(rows, 0) * 0.9**before)
    measured = measure(machine, machine.clock)
    assert not measured.steady
    assert len(machine.passes) == MOST_ROUNDS * len(ROWS)


def test_wide_passes_that_are_cheaper_than_narrow_ones_are_not_steady() -> None:
    machine = Machine(lambda rows, _: 500.0 / rows)
    assert not measure(machine, machine.clock).steady


def test_measuring_takes_one_pass_a_step_and_gives_its_context_back_when_closed() -> None:
    machine = Machine(linear)
    steps = measuring(machine, machine.clock)
    for count in range(4):
        next(steps)
        assert len(machine.passes) == count
    steps.close()
    assert len(machine.passes) == 3
    # A context still in use would be neither found again nor cut.
    assert machine.context_for([0, 1, 2, 3]).length == 4


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], False), ([5.0], False), ([5.0, 5.2], True), ([5.0, 6.0], False), ([9.0, 5.0, 7.0, 5.1], True)],
)
def test_times_agree_when_the_least_one_came_twice(times: list[float], expected: bool) -> None:
    assert agrees(times) is expected


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        (((1, 100.0), (8, 60.0)), False),
        (((1, 100.0), (8, 95.0), (16, 140.0)), True),
        (((1, 50.0),), True),
    ],
)
def test_costs_must_grow_with_the_rows(costs: tuple[tuple[int, float], ...], expected: bool) -> None:
    assert is_plausible(costs) is expected


def test_costs_are_measured_once_and_read_again_only_for_the_same_machine(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "costs.json"
    first = at_start(Machine(linear), file)
    again = Machine(lambda rows, _: 7.0 * rows)
    assert at_start(again, file).measured == first.measured
    assert again.passes == []
    assert at_start(again, file, threads=2).measured != first.measured


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"machine": "m", "forward_ms": [[1, "x"]], "steady": true}'])
def test_a_damaged_file_is_measured_anew(tmp_path: Path, content: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(content, encoding="utf-8")
    assert [rows for rows, _ in at_start(Machine(linear), file).forward_ms] == list(ROWS)


def test_a_file_of_another_form_is_measured_anew(tmp_path: Path) -> None:
    """The first version kept costs without saying how well they were measured."""
    file = tmp_path / "costs.json"
    at_start(Machine(linear), file)
    stored = json.loads(file.read_text(encoding="utf-8"))
    del stored["steady"]
    file.write_text(json.dumps(stored), encoding="utf-8")
    machine = Machine(linear)
    at_start(machine, file)
    assert machine.passes


def test_a_folder_that_cannot_be_written_costs_only_the_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert at_start(Machine(linear), tmp_path / "file" / "costs.json").forward_ms


def test_passes_that_take_as_long_as_measured_change_nothing() -> None:
    costs = observed(MachineCosts(measured=Measured(COSTS, steady=True)), 60.0)
    assert costs.off_by == pytest.approx(0.2)
    assert not is_due(costs)


@pytest.mark.parametrize("ms", [70.0, 35.0], ids=["slower", "faster"])
def test_passes_that_are_off_by_more_than_thirty_percent_make_measuring_due_and_the_file_say_so(
    tmp_path: Path, ms: float
) -> None:
    file = tmp_path / "costs.json"
    costs = MachineCosts(file, "here", Measured(COSTS, steady=True))
    observed(costs, ms, OBSERVED - 1)
    assert not is_due(costs)
    observed(costs, ms, 1)
    assert is_due(costs)
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert (stored["steady"], stored["forward_ms"]) == (False, [list(pair) for pair in COSTS])


def test_a_few_slow_passes_among_many_are_no_reason_to_measure() -> None:
    costs = MachineCosts(measured=Measured(COSTS, steady=True))
    for number in range(4 * OBSERVED):
        costs.observe(8, 800.0 if number % 3 == 0 else 80.0)
    assert not is_due(costs)


def test_passes_between_measured_widths_are_compared_with_what_lies_between() -> None:
    costs = MachineCosts(measured=Measured(COSTS, steady=True))
    costs.observe(12, 100.0)
    assert costs.off_by == pytest.approx(0.0)


def test_nothing_measured_is_nothing_to_compare_with() -> None:
    costs = observed(MachineCosts(), 60.0)
    assert (costs.off_by, costs.due, costs.curve) == (0.0, False, None)


def test_a_refresh_measures_keeps_and_is_due_no_more(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    at_start(Machine(lambda rows, _: 500.0 + rows), file)
    machine = Machine(linear)
    costs = observed(at_start(machine, file), 52.0)
    assert is_due(costs)
    assert len(list(costs.refresh(machine, machine.clock))) == 1 + 2 * len(ROWS)
    assert dict(costs.forward_ms)[1] == 52.0
    assert not is_due(costs)
    assert at_start(Machine(linear), file).measured == costs.measured


def test_a_refresh_that_is_broken_off_changes_nothing() -> None:
    machine = Machine(linear)
    costs = observed(MachineCosts(measured=Measured(COSTS, steady=True)), 500.0)
    work = costs.refresh(machine, machine.clock)
    next(work)
    next(work)
    work.close()
    assert costs.forward_ms == COSTS
    assert is_due(costs)


def test_a_restless_machine_is_not_measured_over_and_over() -> None:
    restless = Machine(lambda rows, before: linear(rows, 0) * 0.9**before)
    costs = observed(MachineCosts(measured=Measured(COSTS, steady=True)), 500.0)
    list(costs.refresh(restless, restless.clock))
    assert not costs.measured.steady
    assert not is_due(costs)
    assert observed(costs, 60.0).due


def test_every_pass_of_a_job_is_observed_with_its_rows() -> None:
    machine = Machine(linear)
    costs = MachineCosts(measured=Measured(((1, 26.0), (2, 27.0)), steady=True))
    timed = TimedDenoiser(machine, costs, machine.clock)
    context = timed.context_for([1])
    timed.encode(context, [1])
    timed.step(context, CanvasRows(torch.arange(2), torch.arange(1, 3), None, adapted=True))
    assert costs.off_by == pytest.approx(1.0)


def test_a_core_measures_again_in_its_idle_time_once_that_is_due() -> None:
    costs = MachineCosts(measured=Measured(((1, 1e9), (4, 1.1e9)), steady=True))
    core = EngineCore(tiny_denoiser(seed=4), costs=costs, threads=1, gates=Gates.open())
    assert list(core.prepare()) == []
    while not costs.due:
        drive(core, Fill("1", "python", "x = 1\n", "\n", max_tokens=16))
    assert core.facts.forward_ms[0] == (1, 1e9)
    assert list(core.prepare())
    assert core.facts.forward_ms[0][1] < 1e6
