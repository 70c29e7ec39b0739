"""A long run of several random editors, each with a server process of its own, on one engine that is given trouble.

Nothing may be lost: every question has exactly one answer in time, and every text is the editor's own to the letter.
Nothing may be wrong: answers have the shape and the place their question allows, and a question put to the engine
itself again and again has the same answer after every fault as before the first. Memory may not grow with the faults.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Fill
from lsp_server.engine_client import EngineProcess
from tests.fakes.looks import awaited
from tests.fakes.soak_trouble import Target, Trouble

STRETCH = 25
# What is asked of the engine itself, in turn.
CANARIES = (
    Fill("", "python", "def area(width, height):\n    return ", "\n\n\nprint(area(2))\n", max_tokens=24, max_lines=1),
    Fill("", "python", "def is_even(number):\n    return ", "\n", max_tokens=24, max_lines=1),
    Fill("", "go", "package main\n\nfunc add(a int, b int) int {\n\treturn ", "\n}\n", max_tokens=24, max_lines=1),
)
# A model whose cache was cut is converted anew first, on a machine with other work.
CANARY_PATIENCE_S = 300.0
# Failures that an engine in trouble may answer with; anything else is a wrong answer.
PASSING = frozenset({"gone", "loading", "draining", "out_of_memory", "no_space", "internal"})
# More than this in a minute is a leak, once the run is long enough to tell: caches fill for a while.
MOST_SLOPE = 1_000_000
FEWEST_MINUTES = 10.0


@dataclass
class Outcome:
    """What a run came to. `lost` and `wrong` hold a sentence each; memory is in bytes, slopes are bytes a minute."""

    minutes: float = 0.0
    operations: int = 0
    questions: int = 0
    engine_questions: int = 0
    engine_refusals: dict[str, int] = field(default_factory=dict)
    engines: int = 0
    trouble: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)
    longest_outage_s: float = 0.0
    server_rss: list[int] = field(default_factory=list)
    server_slopes: list[float] = field(default_factory=list)
    engine_rss_most: int = 0

    @property
    def faults(self) -> list[str]:
        """What must not be."""
        slopes = self.server_slopes if self.minutes >= FEWEST_MINUTES else []
        grown = [f"a server grew by {slope / 1e6:.2f} MB a minute" for slope in slopes if slope > MOST_SLOPE]
        return [*self.lost, *self.wrong, *grown]

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        return asdict(self) | {"lost": len(self.lost), "wrong": len(self.wrong), "faults": self.faults}


class Canary:
    """Puts the same questions to the engine itself, and keeps what it said first."""

    def __init__(self, engine: EngineProcess, outcome: Outcome, expected: Callable[[Fill], Done] | None) -> None:
        self._engine = engine
        self._outcome = outcome
        self._first = {canary: expected(canary).text for canary in CANARIES} if expected else {}
        self._asked = 0
        self._engines: set[int] = set()
        self._well_at = time.monotonic()

    async def sing(self) -> None:
        """Ask once. The engine may be gone, or on its way; what it answers must be what it answered before."""
        canary = CANARIES[self._asked % len(CANARIES)]
        self._asked += 1
        request = Fill(f"canary {self._asked}", *_rest(canary))
        asking = asyncio.create_task(self._engine.submit(request, wait=True))
        try:
            done = await awaited(asking, CANARY_PATIENCE_S)
        except EngineError as error:
            refusals = self._outcome.engine_refusals
            refusals[error.kind] = refusals.get(error.kind, 0) + 1
            if error.kind not in PASSING:
                self._outcome.wrong.append(f"a canary was refused: {error.kind}, {error.message}")
            await asyncio.sleep(0.2)
            return
        except TimeoutError:
            self._outcome.lost.append(f"canary {self._asked} was not answered in {CANARY_PATIENCE_S:.0f} s")
            return
        finally:
            asking.cancel()
        self._note(canary, done.text)

    def _note(self, canary: Fill, text: str) -> None:
        now = time.monotonic()
        self._outcome.longest_outage_s = max(self._outcome.longest_outage_s, now - self._well_at)
        self._well_at = now
        self._outcome.engine_questions += 1
        if (facts := self._engine.facts) is not None:
            self._engines.add(facts.pid)
            self._outcome.engines = len(self._engines)
        first = self._first.setdefault(canary, text)
        if text != first:
            self._outcome.wrong.append(f"canary {self._asked}: {text!r} is not {first!r}")


def _rest(request: Fill) -> tuple[Any, ...]:
    return tuple(getattr(request, name) for name in list(request.__dataclass_fields__)[1:])


class TroubledSoak:
    """One run. `every_s` are the shortest and the longest pause between two faults, in seconds."""

    def __init__(
        self,
        target: Target,
        engine: EngineProcess,
        seed: int,
        every_s: tuple[float, float],
        expected: Callable[[Fill], Done] | None = None,
    ) -> None:
        self.outcome = Outcome()
        self._target = target
        self._engine = engine
        self._chance = random.Random(seed)
        self._every_s = every_s
        self._trouble = Trouble(target, self._chance)
        self._canary = Canary(engine, self.outcome, expected)
        self._samples: list[list[tuple[float, int]]] = [[] for _ in target.runs]

    async def run(self, minutes: float) -> Outcome:
        """Operate, trouble and ask for `minutes`; then let everything come to rest, and judge."""
        began = time.monotonic()
        end = began + 60 * minutes
        for run in self._target.runs:
            await run.begin()
        background = [
            asyncio.create_task(self._repeat(self._canary.sing, end)),
            asyncio.create_task(self._repeat(self._strike, end)),
        ]
        try:
            await asyncio.gather(*(self._operate(number, end) for number in range(len(self._target.runs))))
            await asyncio.gather(*background)
        finally:
            for task in background:
                task.cancel()
        await self._finish()
        self.outcome.minutes = (time.monotonic() - began) / 60
        return self.outcome

    @staticmethod
    async def _repeat(act: Callable[[], Any], end: float) -> None:
        while time.monotonic() < end:
            await act()

    async def _strike(self) -> None:
        await asyncio.sleep(self._chance.uniform(*self._every_s))
        await self._trouble.strike()

    async def _operate(self, number: int, end: float) -> None:
        run = self._target.runs[number]
        while time.monotonic() < end:
            await run.editor.operate(STRETCH)
            self._samples[number].append((time.monotonic(), run.process.memory_info().rss))
            if (facts := self._engine.facts) is not None:
                self.outcome.engine_rss_most = max(self.outcome.engine_rss_most, _rss(facts.pid))
            # With the last answer the loop may never wait; the others need their turn.
            await asyncio.sleep(0)

    async def _finish(self) -> None:
        outcome = self.outcome
        for run, samples in zip(self._target.runs, self._samples, strict=True):
            await run.checkpoint()
            outcome.server_rss.append(run.process.memory_info().rss)
            outcome.server_slopes.append(slope(samples[len(samples) // 2 :]))
            await run.end()
            asker = run.editor.asker
            outcome.operations += run.editor.done.total()
            outcome.questions += asker.counts.total()
            for text, count in run.editor.shown.items():
                outcome.messages[text] = outcome.messages.get(text, 0) + count
            for fault in run.faults:
                (outcome.lost if _is_loss(fault) else outcome.wrong).append(fault)
        outcome.trouble = dict(self._trouble.done)


def _is_loss(fault: str) -> bool:
    return "not answered" in fault or "without a response" in fault


def _rss(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def slope(samples: list[tuple[float, int]]) -> float:
    """Bytes a minute, by the line of least squares through (seconds, bytes); 0.0 for fewer than two moments."""
    if len({at for at, _ in samples}) < 2:
        return 0.0
    times, sizes = zip(*samples, strict=True)
    return 60 * statistics.linear_regression(times, sizes).slope
