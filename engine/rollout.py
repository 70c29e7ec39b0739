"""Which jobs may take the diffusion route: the share it is rolled out to, and the breaker. Owns the breaker's state.

A share takes jobs by a hash of their id, so the same job goes the same way wherever and whenever it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from engine.breaker import Breaker, BreakerRules
from engine.protocol.messages import BreakerReport

WHOLE_SHARE = 100.0


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether a job may take the diffusion route; why not, in words. is_trial: the breaker waits for how it goes."""

    is_granted: bool = True
    reason: str = ""
    is_trial: bool = False


class Rollout:
    """Not thread-safe. share: 0 to 100, in percent. clock: seconds."""

    def __init__(
        self, clock: Callable[[], float], share: float = WHOLE_SHARE, rules: BreakerRules | None = None
    ) -> None:
        self._clock = clock
        self.share = share
        self._breaker = Breaker(rules or BreakerRules())

    def admit(self, job_id: str) -> Permit:
        """Decide about a job. Whoever was granted the route must say how it went, by `learn`."""
        if not is_within_share(job_id, self.share):
            return Permit(False, f"the diffusion route is held back to {self.share:g} % of the jobs")
        before = self._breaker.state
        self._breaker, is_granted = self._breaker.asked(self._clock())
        if not is_granted:
            return Permit(False, "the diffusion route is closed after failures, and tried again later")
        return Permit(is_trial=before == "open")

    def learn(self, permit: Permit, went_well: bool | None) -> None:
        """How a job with `permit` went; None where that says nothing of the route."""
        if not permit.is_granted:
            return
        now, is_trial = self._clock(), permit.is_trial
        if went_well is None:
            self._breaker = self._breaker.withdrawn(now, is_trial=is_trial)
        elif went_well:
            self._breaker = self._breaker.succeeded(is_trial=is_trial)
        else:
            self._breaker = self._breaker.failed(now, is_trial=is_trial)

    def report(self) -> BreakerReport:
        """The breaker now."""
        return self._breaker.report(self._clock())


def is_within_share(job_id: str, share: float) -> bool:
    """Whether a job belongs to the `share` percent. A job of a smaller share belongs to every larger one."""
    digest = blake2b(job_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") * 100 < share * 2**64
