"""A core's run, taken to its end in the test's own thread."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from engine.job import Core
from engine.protocol.messages import Done, Draft, Fill, Rewrite

Result = TypeVar("Result")


def result_of(work: Generator[object, None, Result]) -> Result:
    """What a generator returns at its end."""
    while True:
        try:
            next(work)
        except StopIteration as finished:
            result: Result = finished.value
            return result


def drive(core: Core, request: Fill | Rewrite) -> tuple[Done, list[Draft], int]:
    """The result, the drafts that came before it, and how many steps were taken."""
    run, steps = core.start(request), 0
    drafts: list[Draft] = []
    while True:
        try:
            draft = next(run)
        except StopIteration as finished:
            return finished.value, drafts, steps
        steps += 1
        if isinstance(draft, Draft):
            drafts.append(draft)
