"""People who type: keys in bursts, pauses, requests as the language server makes them, and what becomes of the answers.

How long a key waits before it asks is decided by the language server's own `Debounce`.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Protocol

from lsp_server.debounce import Debounce
from tests.bench.fleet.agenda import Agenda
from tests.bench.fleet.costs import Hardware
from tests.bench.fleet.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Habits:
    """How somebody types. Only the time between keys is published; the rest are assumptions to be varied.

    key_s: mean seconds between two keys of a burst: 52 words of five characters a minute (Dhakal et al., CHI 2018).
    key_spread, pause_spread: standard deviation of the logarithm of that time, and of the pauses'.
    burst: mean keys of a burst. pause_s: median pause between bursts.
    jump: share of bursts that begin at another place. along: share of keys that type what is offered.
    rewrites_per_hour: selections rewritten. debounce_s: the setting `inlineCompletion.debounceMs`.
    """

    key_s: float = 60 / (52 * 5)
    key_spread: float = 0.5
    burst: float = 12.0
    pause_s: float = 3.0
    pause_spread: float = 1.0
    jump: float = 0.15
    along: float = 0.3
    rewrites_per_hour: float = 6.0
    debounce_s: float = 0.075


class Engines(Protocol):
    """Whatever takes requests and cancels."""

    def submit(self, ticket: Ticket) -> None:
        """Send a request."""
        ...

    def cancel(self, ticket: Ticket) -> None:
        """Send a cancel."""
        ...


@dataclass
class Diary:
    """What happened to one person, in the order in which it did."""

    key_times: list[float] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    typed_along: int = 0
    pauses: int = 0
    pauses_with_offer: int = 0


class Person:
    """One user, one document at a time. Newest wins: a key cancels the question before it.

    When which key falls depends on `seed` and the user only, so that fleets are compared on the same keys.
    """

    def __init__(
        self, agenda: Agenda, engines: Engines, hardware: Hardware, habits: Habits, user: int, seed: int
    ) -> None:
        self.diary = Diary()
        self._agenda = agenda
        self._engines = engines
        self._hardware = hardware
        self._habits = habits
        self._user = user
        self._fingers = random.Random(f"{seed}/{user}/fingers")
        self._mind = random.Random(f"{seed}/{user}/mind")
        self._errands = random.Random(f"{seed}/{user}/errands")
        self._debounce = Debounce(agenda)
        self._place = 0
        self._open: Ticket | None = None
        self._has_offer = False
        agenda.after(self._fingers.random() * 10.0, self._begin_burst)
        if habits.rewrites_per_hour:
            agenda.after(self._until_rewrite(), self._rewrite)

    def _until_rewrite(self) -> float:
        return self._errands.expovariate(self._habits.rewrites_per_hour / 3600)

    def _begin_burst(self) -> None:
        habits = self._habits
        if self._fingers.random() < habits.jump:
            self._place += 1
        more = 1.0 - 1.0 / habits.burst
        keys = 1 + (int(math.log(1.0 - self._fingers.random()) / math.log(more)) if more else 0)
        self._key(keys)

    def _key(self, left: int) -> None:
        now = self._agenda.now()
        self.diary.key_times.append(now)
        if left > 1:
            self._agenda.after(self._around(self._habits.key_s, self._habits.key_spread), lambda: self._key(left - 1))
        else:
            pause = self._habits.pause_s * math.exp(self._fingers.gauss(0.0, self._habits.pause_spread))
            self._agenda.after(pause, self._end_pause)
        if self._has_offer and self._mind.random() < self._habits.along:
            self.diary.typed_along += 1
            return
        self._has_offer = False
        self._drop()
        ticket = Ticket(self._user, self._place, "fill", born=now)
        self._open = ticket
        self._agenda.after(self._debounce.pause_s("fill", self._habits.debounce_s), lambda: self._send(ticket))

    def _around(self, mean: float, spread: float) -> float:
        """A time spread log-normally with that mean."""
        return mean * math.exp(self._fingers.gauss(-spread * spread / 2, spread))

    def _end_pause(self) -> None:
        self.diary.pauses += 1
        self.diary.pauses_with_offer += self._has_offer
        self._begin_burst()

    def _drop(self) -> None:
        dropped, self._open = self._open, None
        if dropped is None or dropped.sent is None:
            return
        dropped.cancelled = self._agenda.now()
        self._engines.cancel(dropped)
        self._debounce.outrun()

    def _send(self, ticket: Ticket) -> None:
        if self._open is ticket:
            self._ask(ticket)

    def _ask(self, ticket: Ticket) -> None:
        task = self._hardware.fill if ticket.kind == "fill" else self._hardware.rewrite
        ticket.steps = task.steps.draw(self._mind)
        ticket.sent = self._agenda.now()
        ticket.told_draft = lambda: self._drafted(ticket)
        ticket.told_done = lambda: self._answered(ticket)
        self.diary.tickets.append(ticket)
        self._engines.submit(ticket)

    def _drafted(self, ticket: Ticket) -> None:
        if ticket.cancelled is None:
            ticket.seen = self._agenda.now()

    def _answered(self, ticket: Ticket) -> None:
        if ticket.cancelled is not None:
            return
        ticket.answered = self._agenda.now()
        if ticket is self._open:
            self._open = None
            self._has_offer = True
            self._debounce.kept_up()

    def _rewrite(self) -> None:
        self._ask(Ticket(self._user, self._place, "rewrite", born=self._agenda.now()))
        self._agenda.after(self._until_rewrite(), self._rewrite)
