"""The simulation of a fleet keeps to what is known of queues, to what was measured, and to itself."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import fleet_sim
from tests.bench.fleet.agenda import Agenda
from tests.bench.fleet.costs import (
    H100_CANVAS,
    H100_PROMPT,
    H100_STEPS,
    H100_TEXT,
    H100_TOKENS_PER_S,
    L4_FIRST_TOKEN_MS,
    L4_PROMPT,
    L4_STEPS,
    Amount,
    Hardware,
    StepCosts,
    Task,
    h100,
    l4,
    laptop,
    line_through,
)
from tests.bench.fleet.people import Habits, Person
from tests.bench.fleet.replica import Batching, Replica
from tests.bench.fleet.simulation import Outcome, Plan, percentile, simulate
from tests.bench.fleet.tables import Limits, cells, head, least_replicas, markdown, record
from tests.bench.fleet.ticket import Kind, Ticket

_PAGE = Path(__file__).parents[3] / "docs" / "fleet.md"


def _hardware(
    base: float = 10.0, steps: int = 1, most: int = 1, canvas: float = 0.0, cold: int = 0, resident: int = 0
) -> Hardware:
    task = Task(resident, cold, Amount(steps, "fixed"))
    return Hardware("made up", StepCosts(base, canvas, 1.0), task, task, most, contexts=2, dollars_per_hour=1.0)


def _ticket(born: float = 0.0, user: int = 0, place: int = 0, kind: Kind = "fill", steps: int = 1) -> Ticket:
    return Ticket(user, place, kind, born, steps)


def _followed(ticket: Ticket, agenda: Agenda) -> Ticket:
    """A ticket that writes down when its replica told of a draft and of the text."""

    def seen() -> None:
        ticket.seen = agenda.now()

    def answered() -> None:
        ticket.answered = agenda.now()

    ticket.told_draft, ticket.told_done = seen, answered
    return ticket


def _mean_stay_s(load: float, step_ms: float, arrivals: int, seed: int) -> float:
    """Mean time of a job of one step at one replica, where jobs come by chance and keep it busy for `load`."""
    agenda = Agenda()
    replica = Replica(agenda, _hardware(step_ms), Batching())
    rng = random.Random(seed)

    def arrive(left: int) -> None:
        replica.submit(_ticket())
        if left:
            agenda.after(rng.expovariate(load / step_ms * 1000), lambda: arrive(left - 1))

    agenda.after(0.0, lambda: arrive(arrivals - 1))
    agenda.run(float("inf"))
    assert replica.left == arrivals
    return replica.stay_s / arrivals


@pytest.mark.parametrize("load", [0.3, 0.5, 0.8])
def test_a_replica_without_batches_waits_as_the_formula_of_m_d_1_says(load: float) -> None:
    step_ms = 10.0
    # Pollaczek and Khinchine, with service times that do not vary: waiting = load * step / (2 * (1 - load)).
    expected = step_ms / 1000 * (1 + load / (2 * (1 - load)))
    assert _mean_stay_s(load, step_ms, 60_000, seed=5) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(laptop(), 3, routing="own", minutes=1.0),
        Plan(l4(), 12, minutes=1.0),
        Plan(l4(), 12, 3, Batching(0.05), "sticky", minutes=1.0),
        Plan(h100(), 6, 2, Batching(0.05, every_step=True), minutes=1.0),
    ],
    ids=["laptops", "one for all", "window and sticky", "window at each step"],
)
class TestRuns:
    def test_every_request_is_answered_or_dropped_or_on_its_way(self, plan: Plan) -> None:
        outcome = simulate(plan)
        assert outcome.requests > 100
        assert outcome.answered + outcome.dropped + outcome.pending == outcome.requests
        assert 0 <= outcome.pending <= 2 * plan.users
        assert outcome.dropped_unseen <= outcome.dropped
        assert 0 < outcome.busy <= 1
        assert len(outcome.answers) <= len(outcome.drafts)

    def test_jobs_and_their_stays_agree_as_little_s_law_says(self, plan: Plan) -> None:
        outcome = simulate(plan)
        # Both sides of L = W * arrivals, times the length of the run; what is still there at its end is in one only.
        assert outcome.stay_s <= outcome.jobs_s * (1 + 1e-9)
        assert outcome.stay_s == pytest.approx(outcome.jobs_s, rel=0.02)

    def test_the_same_seed_comes_out_the_same_and_another_does_not(self, plan: Plan) -> None:
        assert simulate(plan) == simulate(plan)
        assert simulate(replace(plan, seed=2)).drafts != simulate(plan).drafts


def test_the_keys_are_the_same_whatever_the_engines() -> None:
    outcomes = [simulate(Plan(hardware, 4, minutes=1.0)) for hardware in (laptop(), l4(), h100())]
    assert len({outcome.keys for outcome in outcomes}) == 1
    times = []
    for hardware in (laptop(), h100()):
        agenda = Agenda()
        person = Person(agenda, _Deaf(), hardware, Habits(), user=0, seed=1)
        agenda.run(60.0)
        times.append(person.diary.key_times)
    assert times[0] == times[1]


class _Deaf:
    """Engines that never answer."""

    def __init__(self) -> None:
        self.sent: list[Ticket] = []
        self.cancelled: list[Ticket] = []

    def submit(self, ticket: Ticket) -> None:
        self.sent.append(ticket)

    def cancel(self, ticket: Ticket) -> None:
        self.cancelled.append(ticket)


def test_of_a_fast_burst_only_a_lone_key_and_the_last_one_ask() -> None:
    agenda, engines = Agenda(), _Deaf()
    habits = Habits(key_s=0.02, key_spread=0.0, burst=40.0, pause_s=1.0, pause_spread=0.0, rewrites_per_hour=0.0)
    person = Person(agenda, engines, l4(), habits, user=0, seed=1)
    agenda.run(60.0)
    assert person.diary.pauses > 10
    assert len(person.diary.key_times) > 10 * person.diary.pauses
    # A request comes at once behind a pause and one window after the last key, and nothing in between.
    assert len(engines.sent) <= 2 * person.diary.pauses + 2
    assert {ticket.cancelled is not None for ticket in engines.sent[:-1]} == {True}
    assert engines.cancelled == engines.sent[: len(engines.cancelled)]


def test_who_types_what_is_offered_asks_nothing() -> None:
    always = simulate(Plan(l4(), 5, minutes=1.0, habits=Habits(along=1.0, rewrites_per_hour=0.0)))
    never = simulate(Plan(l4(), 5, minutes=1.0, habits=Habits(along=0.0, rewrites_per_hour=0.0)))
    assert always.keys == never.keys
    assert always.requests < never.requests / 20


def test_slower_engines_and_more_people_are_never_better() -> None:
    few, many = (simulate(Plan(h100(), users, minutes=2.0)) for users in (3, 30))
    assert (percentile(many.drafts, 0.95) or 0) > (percentile(few.drafts, 0.95) or 0)
    assert many.dropped / many.requests > few.dropped / few.requests
    relieved = simulate(Plan(h100(), 30, replicas=6, minutes=2.0))
    assert (percentile(relieved.drafts, 0.95) or 0) < (percentile(many.drafts, 0.95) or 0)


def test_a_withdrawn_job_costs_the_step_that_runs_and_no_other() -> None:
    agenda = Agenda()
    replica = Replica(agenda, _hardware(base=10.0, steps=50), Batching())
    ticket = _followed(_ticket(steps=50), agenda)
    replica.submit(ticket)
    agenda.after(0.025, lambda: replica.withdraw(ticket))
    agenda.run(10.0)
    assert replica.busy_s == pytest.approx(0.03)
    assert ticket.seen == pytest.approx(0.01)
    assert ticket.answered is None
    assert len(replica) == 0


def test_a_lone_job_waits_for_the_window_and_a_full_batch_does_not() -> None:
    for every_step, expected in ((False, 0.05 + 3 * 0.01), (True, 3 * (0.05 + 0.01))):
        agenda = Agenda()
        replica = Replica(agenda, _hardware(steps=3, most=2), Batching(0.05, every_step=every_step))
        lone = _followed(_ticket(steps=3), agenda)
        replica.submit(lone)
        agenda.run(10.0)
        assert lone.answered == pytest.approx(expected)
    agenda = Agenda()
    replica = Replica(agenda, _hardware(most=2), Batching(0.05))
    both = [_followed(_ticket(user=user), agenda) for user in range(2)]
    for ticket in both:
        replica.submit(ticket)
    agenda.run(10.0)
    assert [ticket.answered for ticket in both] == [pytest.approx(0.01)] * 2
    assert (replica.denoising_steps, replica.canvases) == (1, 2)


def test_a_job_given_up_in_the_window_is_never_computed() -> None:
    agenda = Agenda()
    replica = Replica(agenda, _hardware(most=2), Batching(0.05))
    ticket = _ticket()
    replica.submit(ticket)
    agenda.after(0.02, lambda: replica.withdraw(ticket))
    agenda.run(1.0)
    assert replica.busy_s == 0.0
    assert replica.left == 1


def test_a_prompt_is_read_once_in_chunks_and_forgotten_for_others() -> None:
    agenda = Agenda()
    replica = Replica(agenda, _hardware(base=1.0, cold=600, resident=20), Batching())
    answered = []
    # The third place pushes out the first: two are kept.
    for place in (1, 1, 2, 3, 1):
        ticket = _followed(_ticket(place=place), agenda)
        began = agenda.now()
        replica.submit(ticket)
        agenda.run(began + 10.0)
        answered.append(round((ticket.answered or 0.0) - began, 6))
    cold, resident = 0.600 + 0.001, 0.020 + 0.001
    assert answered == [cold, resident, cold, cold, cold]
    assert replica.cold_prompts == 4


def test_a_fresh_fill_goes_before_a_rewrite_s_next_step() -> None:
    agenda = Agenda()
    replica = Replica(agenda, _hardware(base=10.0), Batching())
    rewrite = _followed(_ticket(kind="rewrite", steps=5), agenda)
    fill = _followed(_ticket(user=1, steps=1), agenda)
    replica.submit(rewrite)
    agenda.after(0.015, lambda: replica.submit(fill))
    agenda.run(1.0)
    assert fill.answered == pytest.approx(0.03)
    assert rewrite.answered == pytest.approx(0.06)


def test_jobs_of_a_batch_share_its_step_and_pay_for_each_canvas() -> None:
    agenda = Agenda()
    replica = Replica(agenda, _hardware(base=10.0, canvas=2.0, most=4), Batching(0.01))
    tickets = [_followed(_ticket(user=user), agenda) for user in range(3)]
    for ticket in tickets:
        replica.submit(ticket)
    agenda.run(1.0)
    assert [ticket.answered for ticket in tickets] == [pytest.approx(0.01 + 0.016)] * 3


def test_simulated_time_goes_by_what_is_due_and_keeps_the_order_of_equals() -> None:
    agenda, said = Agenda(), list[str]()

    def first() -> None:
        said.append("a")
        agenda.after(0.0, lambda: said.append("b2"))

    agenda.after(2.0, lambda: said.append("c"))
    agenda.after(1.0, first)
    agenda.after(1.0, lambda: said.append("b1"))
    agenda.after(9.0, lambda: said.append("never"))
    agenda.run(3.0)
    assert said == ["a", "b1", "b2", "c"]
    assert agenda.now() == 3.0
    with pytest.raises(ValueError, match="past"):
        agenda.after(-0.1, lambda: None)


def test_a_line_goes_through_points_on_a_line() -> None:
    at_zero, slope = line_through([(1, 5.0), (2, 7.0), (4, 11.0)])
    assert at_zero == pytest.approx(3.0)
    assert slope == pytest.approx(2.0)
    with pytest.raises(ValueError, match="two places"):
        line_through([(1, 5.0), (1, 6.0)])


def test_what_was_derived_gives_back_what_was_published() -> None:
    costs = l4().costs
    for canvases, published_ms in L4_STEPS:
        assert costs.step_s(canvases, 0) * 1000 == pytest.approx(published_ms, rel=0.02)
    first = costs.overhead / 1000 + costs.step_s(0, L4_PROMPT) + costs.step_s(1, 0)
    assert first * 1000 == pytest.approx(L4_FIRST_TOKEN_MS)
    costs = h100().costs
    canvases = H100_TEXT // H100_CANVAS
    seconds = costs.step_s(0, H100_PROMPT) + canvases * (H100_STEPS + 1) * costs.step_s(1, 0)
    assert H100_TEXT / seconds == pytest.approx(H100_TOKENS_PER_S)


def test_the_laptop_s_costs_give_about_the_times_that_were_measured() -> None:
    file = Path(fleet_sim.__file__).parent / "results" / "side_by_side.json"
    cold = json.loads(file.read_text(encoding="utf-8"))["details"]["scenarios"]["cold"]
    costs = laptop().costs
    modelled_ms = 1000 * (costs.step_s(0, cold["prompt_tokens"]) + cold["passes"] * costs.step_s(1, 0))
    assert modelled_ms == pytest.approx(cold["ours_ms"], rel=0.25)


@pytest.mark.parametrize("mean", [1.0, 3.9, 13.3])
def test_an_amount_of_steps_has_its_mean_and_is_one_at_least(mean: float) -> None:
    rng = random.Random(1)
    drawn = [Amount(mean).draw(rng) for _ in range(20_000)]
    assert min(drawn) == 1
    assert sum(drawn) / len(drawn) == pytest.approx(mean, rel=0.03)
    assert {Amount(mean, "fixed").draw(rng) for _ in range(10)} == {round(mean)}


def test_a_percentile_is_a_time_that_happened() -> None:
    times = [0.1, 0.2, 0.3, 0.4]
    assert [percentile(times, share) for share in (0.0, 0.5, 0.51, 0.95, 1.0)] == [0.1, 0.2, 0.3, 0.4, 0.4]
    assert percentile([], 0.5) is None


@pytest.mark.parametrize("needed", [1, 2, 3, 5, 7, 16])
def test_the_fewest_replicas_are_found(needed: int) -> None:
    some = simulate(Plan(l4(), 1, minutes=0.5))

    def answer(plan: Plan) -> Outcome:
        return replace(some, plan=plan, drafts=(0.1 if plan.replicas >= needed else 0.9,))

    found = least_replicas(some.plan, answer, Limits(0.5, 0.0), at_most=16)
    assert found is not None
    assert found.plan.replicas == needed
    assert least_replicas(some.plan, answer, Limits(0.05, 0.0), at_most=16) is None


def test_limits_hold_only_where_people_get_what_is_fast() -> None:
    fast = replace(simulate(Plan(l4(), 1, minutes=0.5)), drafts=(0.1,) * 20, offered=0.9)
    assert Limits(0.1, 0.9).hold(fast)
    assert not Limits(0.1, 0.91).hold(fast)
    assert not Limits(0.09, 0.9).hold(fast)
    assert not Limits(0.1, 0.0).hold(replace(fast, drafts=()))


def test_the_command_answers_for_one_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    fleet_sim.main(["--users", "5", "--minutes", "0.5", "--json"])
    first = capsys.readouterr().out
    fleet_sim.main(["--users", "5", "--minutes", "0.5", "--json"])
    assert capsys.readouterr().out == first
    said = json.loads(first)
    assert said["users"] == 5
    assert said["answered"] + said["dropped"] + said["pending"] == said["requests"]
    fleet_sim.main(["--users", "5", "--minutes", "0.5", "--size", "500"])
    assert "| 5 | 1 |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--network-ms"):
        fleet_sim.main(["--users", "1", "--minutes", "0.5", "--size", "1"])


def test_a_row_has_a_cell_for_each_name() -> None:
    for plan in (Plan(laptop(), 1, routing="own", minutes=0.5), Plan(l4(), 2, 2, minutes=0.5)):
        outcome = simulate(plan)
        assert len(cells(outcome)) == len(head())
        assert record(outcome)["replicas"] == plan.replicas
    assert markdown([("a",) * len(head())]).count("\n") == 2


def test_the_page_names_every_source_and_has_a_place_for_its_tables() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    sources = set(re.findall(r"https://\S+", (Path(fleet_sim.__file__).parent / "fleet" / "costs.py").read_text()))
    assert len(sources) >= 4
    assert [source for source in sources if source not in page] == []
    assert fleet_sim.with_tables(page, "new tables").count("new tables") == 1
    assert fleet_sim.with_tables(fleet_sim.with_tables(page, "one"), "two") == fleet_sim.with_tables(page, "two")
