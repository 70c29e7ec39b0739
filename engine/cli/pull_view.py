"""How a pull shows itself to a person: a bar on a terminal, plain lines everywhere else.

Writes to standard error only, so that what a command prints as its answer stays clean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from engine.store.progress import PullProgress

LINE_EVERY_S = 5.0

View = Callable[[PullProgress], None]


@contextmanager
def shown_pull(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[View]:
    """A receiver for a pull's reports, drawing on `console` until the block ends."""
    if not console.is_terminal:
        yield PlainLines(console, clock)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress)


class PlainLines:
    """One line when something begins, and one every few seconds while bytes arrive."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._last = clock()

    def __call__(self, report: PullProgress) -> None:
        """Print `report` if it says something new or enough time has passed."""
        if report.message:
            self._print(report.message)
        elif self._clock() - self._last >= LINE_EVERY_S:
            self._print(f"  {counted(report)}")

    def _print(self, line: str) -> None:
        self._last = self._clock()
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """One bar per stage; sentences stand above the bars."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage = ""
        self._bar: TaskID | None = None

    def __call__(self, report: PullProgress) -> None:
        """Move the bar, or begin another one when the stage changes."""
        if report.message:
            self._progress.console.print(report.message, markup=False, highlight=False, soft_wrap=True)
        if report.total == 0:
            return
        if self._bar is None or report.stage != self._stage:
            self._begin(report)
        elif self._bar is not None:
            self._progress.update(self._bar, completed=report.done)

    def _begin(self, report: PullProgress) -> None:
        if self._bar is not None:
            self._progress.remove_task(self._bar)
        self._stage = report.stage
        self._bar = self._progress.add_task(report.stage, total=report.total, completed=report.done)


def counted(report: PullProgress) -> str:
    """Size so far, of how much, how fast, and how long it will take, in words."""
    parts = [f"{report.done / 1e6:.0f} MB"]
    if report.total:
        parts[0] = f"{report.done / 1e6:.0f} of {report.total / 1e6:.0f} MB"
    if report.speed > 0:
        parts.append(f"{report.speed / 1e6:.1f} MB/s")
    if report.left_s is not None:
        parts.append(f"{report.left_s:.0f} s left")
    return ", ".join(parts)
