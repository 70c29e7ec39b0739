"""How a pull shows itself to a program: one JSON object a line, each with its `event`.

    {"event": "progress", "stage": "downloading", "message": "", "done": 1048576, "total": 491400064}
    {"event": "done", "path": "/home/me/.local/share/lacuna/models/…"}
    {"event": "error", "message": "…", "remedy": "…"}

Of reports that only count at most `MOST_PER_SECOND` are printed; `total` is 0 where it is not known. The last line is
`done` or `error`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from engine.store.progress import PullProgress

MOST_PER_SECOND = 10


class PullLines:
    """A receiver for a pull's reports that hands whole lines to `echo`, which must write them out at once."""

    def __init__(self, echo: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._echo = echo
        self._clock = clock
        self._last: float | None = None

    def __call__(self, report: PullProgress) -> None:
        """Print `report` if it says something new or enough time has passed."""
        now = self._clock()
        if not report.message and self._last is not None and now - self._last < 1 / MOST_PER_SECOND:
            return
        self._last = now
        about = {"stage": report.stage, "message": report.message}
        self._print("progress", **about, done=report.done, total=report.total)

    def done(self, path: Path) -> None:
        """The model is here."""
        self._print("done", path=str(path))

    def error(self, message: str, remedy: str) -> None:
        """It is not, and what can be done about it."""
        self._print("error", message=message, remedy=remedy)

    def _print(self, event: str, **members: object) -> None:
        self._echo(json.dumps({"event": event, **members}, ensure_ascii=False))
