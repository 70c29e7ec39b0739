"""What a core tells of a job and of itself, whichever family it runs: moments, drafts, facts.

Pure but for the process id.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import engine
from engine.protocol.messages import Draft, Facts

Clock = Callable[[], float]


@dataclass(slots=True)
class Timing:
    """Moments of one job, in seconds of the core's clock."""

    started: float
    encoded: float = 0.0
    first_draft: float = 0.0

    def ms(self, moment: float) -> float:
        """Milliseconds from the start of the job to `moment`."""
        return round((moment - self.started) * 1000, 3)

    def expired(self, now: float, deadline_ms: int) -> bool:
        """Whether a deadline counted from the start of the job is over; 0 means none."""
        return deadline_ms > 0 and self.ms(now) >= deadline_ms


class Known(Protocol):
    """The part of a model's facts that clients are told."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def precision(self) -> str: ...

    @property
    def window_tokens(self) -> int: ...


def engine_facts(known: Known, adapter: str, threads: int, forward_ms: tuple[tuple[int, float], ...]) -> Facts:
    """What this process is with that model in it, for `Ready`."""
    return Facts(
        model=known.name,
        family=known.family,
        device=known.device,
        precision=known.precision,
        adapter=adapter,
        window_tokens=known.window_tokens,
        threads=threads,
        forward_ms=forward_ms,
        engine_version=engine.__version__,
        pid=os.getpid(),
    )


def draft_message(job: str, text: str, settled: int, step: int, steps: int, hole: int = 0) -> Draft:
    """The reply after step `step` of about `steps`; `settled` never reaches beyond the text."""
    return Draft(job, text, min(settled, len(text)), step, steps, hole)
