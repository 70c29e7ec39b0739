"""Which job takes the next step. Pure: no clock, no socket, no model.

The policy, in order:
1. A job past its deadline, once: its next step is the one that hands back the best text so far.
2. A fill that has not begun: somebody is looking at the cursor.
3. Fills before rewrites, but while both wait a rewrite gets every `REWRITE_SHARE`-th step, so it is never starved.
4. Among clients, the one whose jobs of that kind were served longest ago; among one client's fills the newest,
   among its rewrites the oldest.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

REWRITE_SHARE = 4

Kind = Literal["fill", "rewrite"]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Key]):
    """A job as the scheduler sees it. `deadline` is a time of the caller's clock, infinite when there is none."""

    key: Key
    client: int
    kind: Kind
    deadline: float = math.inf
    arrival: int = 0
    steps: int = 0


class Scheduler(Generic[Key]):
    """The jobs in progress and the order of their steps. One step goes to one job at a time."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry[Key]] = {}
        self._arrivals = 0
        self._turns = 0
        self._served: dict[tuple[int, Kind], int] = {}
        self._fills_in_a_row = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def add(self, key: Key, client: int, kind: Kind, deadline: float = math.inf) -> None:
        """Take in a job. Raises ValueError if `key` is already here."""
        if key in self._entries:
            raise ValueError("the job is already scheduled")
        self._arrivals += 1
        self._entries[key] = Entry(key, client, kind, deadline, self._arrivals)

    def remove(self, key: Key) -> None:
        """Forget a job; unknown keys are ignored."""
        entry = self._entries.pop(key, None)
        if entry and not self.keys_of(entry.client):
            self._served.pop((entry.client, "fill"), None)
            self._served.pop((entry.client, "rewrite"), None)

    def keys_of(self, client: int) -> list[Key]:
        """The jobs of one client, oldest first."""
        return [entry.key for entry in self._entries.values() if entry.client == client]

    def started(self) -> list[Key]:
        """The jobs that have taken a step, oldest first."""
        return [entry.key for entry in self._entries.values() if entry.steps]

    def next(self, now: float) -> Key | None:
        """The job whose turn it is, and count the turn as taken. None when there is no job."""
        if not self._entries:
            return None
        entry = self._choose(now)
        self._turns += 1
        self._served[entry.client, entry.kind] = self._turns
        self._fills_in_a_row = self._fills_in_a_row + 1 if entry.kind == "fill" else 0
        # A passed deadline counts once: a job that does not end by it must not hold up the others.
        deadline = entry.deadline if entry.deadline > now else math.inf
        self._entries[entry.key] = replace(entry, deadline=deadline, steps=entry.steps + 1)
        return entry.key

    def _choose(self, now: float) -> Entry[Key]:
        jobs = list(self._entries.values())
        if overdue := [job for job in jobs if job.deadline <= now]:
            return min(overdue, key=lambda job: job.deadline)
        fills = [job for job in jobs if job.kind == "fill"]
        rewrites = [job for job in jobs if job.kind == "rewrite"]
        if fresh := [job for job in fills if not job.steps]:
            return self._by_client(fresh)
        if rewrites and (not fills or self._fills_in_a_row >= REWRITE_SHARE - 1):
            return self._by_client(rewrites)
        return self._by_client(fills)

    def _by_client(self, jobs: list[Entry[Key]]) -> Entry[Key]:
        def rank(job: Entry[Key]) -> tuple[int, int]:
            return self._served.get((job.client, job.kind), 0), -job.arrival if job.kind == "fill" else job.arrival

        return min(jobs, key=rank)
