"""What one user may take of a team's engine: jobs at once, and jobs a minute. Pure: the caller has the clock.

The rate is a token bucket: a user who was quiet may come with a minute's worth at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """jobs_at_once: running or waiting. jobs_a_minute: begun, cancelled ones included. 0 for no limit."""

    jobs_at_once: int = 8
    jobs_a_minute: int = 600


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a job may not begin, and after how many seconds it is worth asking again."""

    why: str
    retry_s: int


@dataclass(slots=True)
class _Account:
    running: int = 0
    left: float = 0.0
    seen: float = 0.0


class QuotaBook:
    """Every user's account."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._accounts: dict[str, _Account] = {}

    def begin(self, user: str, now: float) -> Refusal | None:
        """Begin a job of `user` at `now` (seconds of any steady clock), or say why not. `end` belongs to each begun."""
        quota = self._quota
        account = self._accounts.setdefault(user, _Account(left=quota.jobs_a_minute, seen=now))
        if quota.jobs_at_once and account.running >= quota.jobs_at_once:
            return Refusal(f"{account.running} jobs of {user} are running, as many as one user may have", 1)
        if quota.jobs_a_minute:
            a_second = quota.jobs_a_minute / 60
            account.left = min(quota.jobs_a_minute, account.left + max(0.0, now - account.seen) * a_second)
            account.seen = max(account.seen, now)
            if account.left < 1:
                why = f"{user} has begun {quota.jobs_a_minute} jobs within a minute, as many as one user may"
                return Refusal(why, math.ceil((1 - account.left) / a_second))
            account.left -= 1
        account.running += 1
        return None

    def end(self, user: str) -> None:
        """A job that was begun has ended, however it did."""
        self._accounts[user].running -= 1

    @property
    def running(self) -> int:
        """Jobs begun and not ended."""
        return sum(account.running for account in self._accounts.values())

    @property
    def busy_users(self) -> int:
        """Users with a job that has not ended."""
        return sum(account.running > 0 for account in self._accounts.values())
