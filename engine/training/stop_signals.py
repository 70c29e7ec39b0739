"""Ctrl-C and SIGTERM as a question a loop asks between two steps, so that it can save before it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether SIGINT or SIGTERM has come. On the main thread only.

    The first one is only noted, and from then on signals act as they did before: a second one ends the process. A
    signal that the process was started to ignore stays ignored.
    """
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}
    noted: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(noted)
    finally:
        restore()
