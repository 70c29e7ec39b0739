"""The breaker of the diffusion route: closed, open after failures in a row, half open while a job tries it again. Pure.

    closed ──failures in a row──► open ──its wait is over──► half_open ──the trial succeeds──► closed
                                   ▲                            │
                                   └──it fails: twice the wait──┘   a trial that is given up is tried again at once

After the circuit breaker of Nygard, "Release It!" (2007). Times are seconds of the caller's clock, never going back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from engine.protocol.messages import BreakerReport

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """failures: how many in a row open it. first_wait_s: from then to the first trial; every trial that fails doubles
    the wait, to at most `longest_wait_s`."""

    failures: int = 5
    first_wait_s: float = 30.0
    longest_wait_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """One moment of it. wait_s and retry_at are of the latest opening."""

    rules: BreakerRules = field(default_factory=BreakerRules)
    state: State = "closed"
    failures: int = 0
    openings: int = 0
    wait_s: float = 0.0
    retry_at: float = 0.0

    def asked(self, now: float) -> tuple[Breaker, bool]:
        """A job asks to be let through: the breaker afterwards, and whether it may. From open on it is a trial."""
        if self.state == "open" and now >= self.retry_at:
            return replace(self, state="half_open"), True
        return self, self.state == "closed"

    def succeeded(self, *, is_trial: bool) -> Breaker:
        """A job that was let through went well. One from before the opening says nothing of the route now."""
        if is_trial or self.state == "closed":
            return replace(self, state="closed", failures=0, wait_s=0.0)
        return self

    def failed(self, now: float, *, is_trial: bool) -> Breaker:
        """A job that was let through failed by the route's fault."""
        if not is_trial and self.state != "closed":
            return self
        failures = self.failures + 1
        if not is_trial and failures < self.rules.failures:
            return replace(self, failures=failures)
        wait = min(2 * self.wait_s if is_trial else self.rules.first_wait_s, self.rules.longest_wait_s)
        openings = self.openings + 1
        return replace(self, state="open", failures=failures, openings=openings, wait_s=wait, retry_at=now + wait)

    def withdrawn(self, now: float, *, is_trial: bool) -> Breaker:
        """A job that was let through ended without telling anything of the route, as by a cancel."""
        return replace(self, state="open", retry_at=now) if is_trial else self

    def report(self, now: float) -> BreakerReport:
        """It as clients are told."""
        left = max(0.0, self.retry_at - now) if self.state == "open" else 0.0
        return BreakerReport(self.state, self.failures, self.openings, left)
