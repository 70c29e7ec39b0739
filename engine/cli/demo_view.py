"""How the demo looks: the canvas turning from noise into text, a coloured diff, a line of numbers."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.syntax import Syntax
from rich.text import Text

from engine.cli.editor import DraftSeen

NOISE = "░▒▓"
NOISE_LENGTH = 48
EMPTY = DraftSeen("", 0, 0)


class CanvasView:
    """The canvas of the running request on a terminal: settled text solid, the draft dimmed, the rest noise."""

    def __init__(self, console: Console, *, live: bool) -> None:
        self._console = console
        self._enabled = live
        self._draft = EMPTY
        self._noise = random.Random(0)  # noqa: S311 - decoration
        self._title = ""

    @contextmanager
    def scene(self, title: str) -> Iterator[None]:
        """Show drafts while the block runs; nothing is left on the screen afterwards."""
        self._title, self._draft = title, EMPTY
        if not self._enabled:
            yield
            return
        with Live(get_renderable=self._frame, console=self._console, transient=True, refresh_per_second=15):
            yield

    def show(self, draft: DraftSeen) -> None:
        """Take in one denoising step; it is drawn with the next frame."""
        self._draft = draft

    def _frame(self) -> Group:
        """The canvas now, with fresh noise where nothing has been said yet."""
        draft = self._draft
        canvas = Text()
        canvas.append(draft.text[: draft.settled], style="bold")
        canvas.append(draft.text[draft.settled :], style="dim italic")
        noise = max(0, NOISE_LENGTH - len(draft.text) // 2)
        canvas.append("".join(self._noise.choice(NOISE) for _ in range(noise)), style="bright_black")
        head = f"step {draft.step}" if draft.step else "reading"
        return Group(Text(f"{head}  {self._title}".rstrip(), style="cyan"), canvas)


def print_diff(console: Console, name: str, before: str, after: str) -> None:
    """A unified diff in colours; a plain sentence when nothing changed."""
    lines = difflib.unified_diff(
        before.split("\n"), after.split("\n"), f"{name} (before)", f"{name} (after)", n=2, lineterm=""
    )
    diff = "\n".join(lines)
    console.print(Syntax(diff, "diff", background_color="default", word_wrap=True) if diff else "nothing changed")


def print_numbers(console: Console, ok: bool, step: dict[str, Any]) -> None:
    """Times, passes and route of a step."""
    passes = step["passes"]
    rate = step["tokens"] / passes if passes else 0.0
    mark = "[green]ok[/green]" if ok else "[red]failed[/red]"
    console.print(
        f"{mark}  first draft {step['ms_first_draft']:.0f} ms, result {step['ms_total']:.0f} ms, "
        f"{step['tokens']} tokens in {passes} passes ({rate:.2f} tokens per pass), route {step['route'] or 'none'}\n"
    )
