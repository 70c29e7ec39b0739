"""The console that tables are printed on: as wide as the terminal, and wide enough for one line where there is none."""

from __future__ import annotations

from rich.console import Console

PIPE_WIDTH = 200


def table_console() -> Console:
    """Standard output, unhighlighted; a pipe has no width, so lines there are not folded for a screen."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)
