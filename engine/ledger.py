"""The book of jobs: which ids are open on which connection, and how the closed ones ended.

Pure. It is where "exactly one final reply per accepted request" is kept: a job is opened once, closed once, and a
second final reply for it is refused.
"""

from __future__ import annotations

from engine.protocol.messages import Cancelled, Done, Draft, Failed, Reply

MAX_JOBS_PER_CLIENT = 64


class Ledger:
    """Open jobs and counts. Times are the caller's clock, in seconds."""

    def __init__(self, idle_since: float) -> None:
        self.idle_since = idle_since
        self.done = 0
        self.cancelled = 0
        self.failed = 0
        self._open: set[tuple[int, str]] = set()

    @property
    def running(self) -> int:
        """How many jobs are open."""
        return len(self._open)

    @property
    def open_jobs(self) -> list[tuple[int, str]]:
        """The jobs without a final reply, as (client, id)."""
        return sorted(self._open)

    def refusal(self, client: int, job_id: str) -> str:
        """Why this job cannot be opened, empty if it can."""
        if not job_id:
            return "a request needs an id"
        if (client, job_id) in self._open:
            return f"job {job_id!r} is still running"
        if sum(1 for owner, _ in self._open if owner == client) >= MAX_JOBS_PER_CLIENT:
            return f"{MAX_JOBS_PER_CLIENT} jobs are already waiting"
        return ""

    def open(self, client: int, job_id: str) -> None:
        """Write down a job that `refusal` had nothing against."""
        self._open.add((client, job_id))

    def settle(self, client: int, reply: Reply, now: float) -> bool:
        """Write down a job's reply; False if it must not be sent: its job has had its final one, or never was."""
        match reply:
            case Draft(id=job_id):
                return (client, job_id) in self._open
            case Done(id=job_id) | Cancelled(id=job_id) | Failed(id=job_id):
                return self._close(client, job_id, reply, now)
            case _:
                return True

    def idle_s(self, now: float) -> float:
        """Seconds since the last job ended, 0 while one is open."""
        return 0.0 if self._open else max(0.0, now - self.idle_since)

    def _close(self, client: int, job_id: str, reply: Done | Cancelled | Failed, now: float) -> bool:
        if (client, job_id) not in self._open:
            return False
        self._open.remove((client, job_id))
        self.idle_since = now
        self.done += isinstance(reply, Done)
        self.cancelled += isinstance(reply, Cancelled)
        self.failed += isinstance(reply, Failed)
        return True
