"""A plan of a fleet, run: people, a network, replicas; and what came of it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.bench.fleet.agenda import Action, Agenda
from tests.bench.fleet.costs import Hardware
from tests.bench.fleet.people import Diary, Habits, Person
from tests.bench.fleet.replica import Batching, Replica
from tests.bench.fleet.ticket import Ticket

Routing = Literal["own", "sticky", "two_choices"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated. minutes: of typing, after one more minute that is not counted.

    routing: `own` gives each person a replica, as laptops do; `sticky` always sends a person to the same one;
    `two_choices` sends each request to the shorter queue of two drawn at random, as Ray Serve does.
    network_s: there and back.
    """

    hardware: Hardware
    users: int
    replicas: int = 1
    batching: Batching = field(default_factory=Batching)
    routing: Routing = "two_choices"
    network_s: float = 0.02
    minutes: float = 10.0
    seed: int = 1
    habits: Habits = field(default_factory=Habits)


WARM_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds, shares and counts of one run, fills' times sorted.

    drafts: from the sending of a request, which its engine and the network answer for. answers: from the key, with what
    the server waits for more keys, which it does for longer where answers come late.

    requests = answered + dropped + pending; dropped_unseen: of the dropped, those before a first draft.
    offered: share of the pauses at whose end a text stood there. busy: share of the time a replica computes.
    batch: canvases in a step that denoises, in the mean. cold: share of the jobs begun whose context was not resident.
    jobs_s, stay_s: seconds times jobs, as counted at the replicas and as added up job by job.
    """

    plan: Plan
    keys: int
    requests: int
    answered: int
    dropped: int
    dropped_unseen: int
    pending: int
    drafts: tuple[float, ...]
    answers: tuple[float, ...]
    offered: float
    busy: float
    batch: float
    cold: float
    jobs_s: float
    stay_s: float

    @property
    def dollars_per_user_hour(self) -> float:
        """What the replicas cost, shared by the people who type."""
        return self.plan.hardware.dollars_per_hour * self.plan.replicas / self.plan.users


def percentile(times: Sequence[float], share: float) -> float | None:
    """The least of the sorted times that `share` of them do not exceed; None where there are none."""
    return times[max(1, math.ceil(share * len(times))) - 1] if times else None


class Fleet:
    """The replicas behind their network."""

    def __init__(self, agenda: Agenda, plan: Plan) -> None:
        self._agenda = agenda
        self._plan = plan
        self._rng = random.Random(f"{plan.seed}/routing")
        self._one_way_s = 0.0 if plan.routing == "own" else plan.network_s / 2
        count = plan.users if plan.routing == "own" else plan.replicas
        self.replicas = tuple(Replica(agenda, plan.hardware, plan.batching) for _ in range(count))
        self._went_to: dict[Ticket, Replica] = {}

    def submit(self, ticket: Ticket) -> None:
        """See `people.Engines`."""
        ticket.told_draft = self._back(ticket.told_draft)
        ticket.told_done = self._back(ticket.told_done)
        way_s = self._one_way_s + self._plan.hardware.costs.overhead / 1000
        self._agenda.after(way_s, lambda: self._arrive(ticket))

    def cancel(self, ticket: Ticket) -> None:
        """See `people.Engines`."""
        self._agenda.after(self._one_way_s, lambda: self._withdraw(ticket))

    def _back(self, tell: Action) -> Action:
        return lambda: self._agenda.after(self._one_way_s, tell)

    def _arrive(self, ticket: Ticket) -> None:
        if not ticket.withdrawn:
            replica = self._went_to[ticket] = self._route(ticket.user)
            replica.submit(ticket)

    def _route(self, user: int) -> Replica:
        if self._plan.routing != "two_choices" or len(self.replicas) == 1:
            return self.replicas[user % len(self.replicas)]
        return min(self._rng.sample(self.replicas, 2), key=len)

    def _withdraw(self, ticket: Ticket) -> None:
        ticket.withdrawn = True
        if ticket in self._went_to:
            self._went_to.pop(ticket).withdraw(ticket)


def simulate(plan: Plan) -> Outcome:
    """Run a plan. The same plan always comes out the same."""
    agenda = Agenda()
    fleet = Fleet(agenda, plan)
    people = [Person(agenda, fleet, plan.hardware, plan.habits, user, plan.seed) for user in range(plan.users)]
    agenda.run(WARM_UP_S)
    before = sum(replica.busy_s for replica in fleet.replicas)
    agenda.run(WARM_UP_S + plan.minutes * 60)
    for replica in fleet.replicas:
        replica.finish()
    computed = sum(replica.busy_s for replica in fleet.replicas) - before
    return _outcome(plan, [person.diary for person in people], fleet.replicas, computed)


def _outcome(plan: Plan, diaries: Sequence[Diary], replicas: Sequence[Replica], computed_s: float) -> Outcome:
    tickets = [ticket for diary in diaries for ticket in diary.tickets]
    counted = [ticket for ticket in tickets if ticket.kind == "fill" and ticket.born >= WARM_UP_S]
    dropped = [ticket for ticket in tickets if ticket.cancelled is not None]
    answered = sum(ticket.answered is not None for ticket in tickets)
    jobs = sum(replica.begun for replica in replicas)
    steps = sum(replica.denoising_steps for replica in replicas)
    pauses = sum(diary.pauses for diary in diaries)
    return Outcome(
        plan,
        keys=sum(len(diary.key_times) for diary in diaries),
        requests=len(tickets),
        answered=answered,
        dropped=len(dropped),
        dropped_unseen=sum(ticket.seen is None for ticket in dropped),
        pending=len(tickets) - answered - len(dropped),
        drafts=tuple(sorted(one.seen - one.sent for one in counted if one.seen is not None and one.sent is not None)),
        answers=tuple(sorted(one.answered - one.born for one in counted if one.answered is not None)),
        offered=sum(diary.pauses_with_offer for diary in diaries) / pauses if pauses else 0.0,
        busy=computed_s / (plan.minutes * 60 * len(replicas)),
        batch=sum(replica.canvases for replica in replicas) / steps if steps else 0.0,
        cold=sum(replica.cold_prompts for replica in replicas) / jobs if jobs else 0.0,
        jobs_s=sum(replica.jobs_s for replica in replicas),
        stay_s=sum(replica.stay_s for replica in replicas),
    )
