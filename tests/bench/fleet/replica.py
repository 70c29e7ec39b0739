"""One engine: which jobs take the next step together, how long it takes, and what a cancel leaves undone."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from tests.bench.fleet.agenda import Agenda
from tests.bench.fleet.costs import Hardware
from tests.bench.fleet.ticket import Ticket

# Tokens of a prompt read in one step of a job, so that nobody waits for a long prompt of somebody else's.
CHUNK = 256


@dataclass(frozen=True, slots=True)
class Batching:
    """How jobs are gathered for a step.

    window_s: how long the first job waits for others. most: canvases in a step, no more than the hardware takes.
    every_step: whether each step waits anew, or only the first after a rest; jobs that come meanwhile join the next.
    """

    window_s: float = 0.0
    most: int = 32
    every_step: bool = False


@dataclass(slots=True)
class _Job:
    ticket: Ticket
    arrived: float
    unread: int | None = None
    steps_done: int = 0
    turn: int = 0

    def rank(self) -> tuple[bool, int, float]:
        """A fill that has shown nothing goes first, then whoever was served longest ago."""
        is_fresh = self.ticket.kind == "fill" and not self.steps_done
        return not is_fresh, self.turn, self.arrived


class Replica:
    """One engine's jobs. One step runs at a time, for as many jobs as the batch holds."""

    def __init__(self, agenda: Agenda, hardware: Hardware, batching: Batching) -> None:
        self._agenda = agenda
        self._hardware = hardware
        self._batching = batching
        self._most = min(batching.most, hardware.most)
        self._jobs: list[_Job] = []
        self._resident: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._is_stepping = False
        self._window = 0
        self._window_is_open = False
        self._turns = 0
        self._changed_at = agenda.now()
        self.busy_s = 0.0
        self.denoising_steps = 0
        self.canvases = 0
        self.begun = 0
        self.cold_prompts = 0
        self.left = 0
        self.jobs_s = 0.0
        self.stay_s = 0.0

    def __len__(self) -> int:
        return len(self._jobs)

    def submit(self, ticket: Ticket) -> None:
        """A request has arrived."""
        self._count()
        self._jobs.append(_Job(ticket, self._agenda.now()))
        self._consider()

    def withdraw(self, ticket: Ticket) -> None:
        """Nothing more is computed for a request after the step that is running."""
        ticket.withdrawn = True
        if not self._is_stepping:
            self._sweep()

    def finish(self) -> None:
        """Bring the counts up to the present."""
        self._count()

    def _count(self) -> None:
        now = self._agenda.now()
        self.jobs_s += len(self._jobs) * (now - self._changed_at)
        self._changed_at = now

    def _sweep(self) -> None:
        self._count()
        now = self._agenda.now()
        staying = []
        for job in self._jobs:
            if not job.ticket.withdrawn and not job.ticket.finished:
                staying.append(job)
                continue
            self.left += 1
            self.stay_s += now - job.arrived
        self._jobs = staying

    def _consider(self) -> None:
        if self._is_stepping or not self._jobs:
            return
        is_going = any(job.turn for job in self._jobs)
        waits = self._batching.window_s > 0 and (self._batching.every_step or not is_going)
        if not waits or len(self._jobs) >= self._most:
            self._step()
        elif not self._window_is_open:
            self._window_is_open = True
            number = self._window
            self._agenda.after(self._batching.window_s, lambda: self._close(number))

    def _close(self, number: int) -> None:
        if number != self._window or self._is_stepping:
            return
        self._window_is_open = False
        self._sweep()
        if self._jobs:
            self._step()

    def _step(self) -> None:
        self._window += 1
        self._window_is_open = False
        self._turns += 1
        chosen = sorted(self._jobs, key=_Job.rank)[: self._most]
        reading = 0
        reads: list[tuple[_Job, int]] = []
        for job in chosen:
            job.turn = self._turns
            tokens = min(CHUNK, self._unread_of(job))
            reads.append((job, tokens))
            reading += tokens
        denoised = sum(not tokens for _, tokens in reads)
        took = self._hardware.costs.step_s(denoised, reading)
        self.denoising_steps += denoised > 0
        self.canvases += denoised
        self.busy_s += took
        self._is_stepping = True
        self._agenda.after(took, lambda: self._stepped(reads))

    def _unread_of(self, job: _Job) -> int:
        if job.unread is None:
            task = self._hardware.fill if job.ticket.kind == "fill" else self._hardware.rewrite
            is_resident = (job.ticket.user, job.ticket.place) in self._resident
            self.begun += 1
            self.cold_prompts += not is_resident
            job.unread = task.resident if is_resident else task.cold
        return job.unread

    def _stepped(self, reads: list[tuple[_Job, int]]) -> None:
        self._is_stepping = False
        for job, tokens in reads:
            ticket = job.ticket
            if tokens and job.unread is not None:
                job.unread -= tokens
                if not job.unread:
                    self._keep(ticket)
            elif not ticket.withdrawn:
                job.steps_done += 1
                if job.steps_done == 1:
                    ticket.told_draft()
                if job.steps_done == ticket.steps:
                    ticket.finished = True
                    ticket.told_done()
        self._sweep()
        self._consider()

    def _keep(self, ticket: Ticket) -> None:
        self._resident[ticket.user, ticket.place] = None
        self._resident.move_to_end((ticket.user, ticket.place))
        while len(self._resident) > self._hardware.contexts:
            self._resident.popitem(last=False)
