"""An `Editor` that writes down what it is told, and a `Clock` that moves only when told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeEditor:
    """`configuration` is what it answers when asked for its section."""

    configuration: object = None
    logged: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    drafts: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    edits: list[tuple[str, object]] = field(default_factory=list)
    progress: list[tuple[int | str, object]] = field(default_factory=list)

    def log(self, message: str) -> None:
        self.logged.append(message)

    def warn(self, message: str) -> None:
        self.warned.append(message)

    def show(self, message: str) -> None:
        self.shown.append(message)

    def alert(self, message: str) -> None:
        self.alerts.append(message)

    def send_draft(self, draft: dict[str, Any]) -> None:
        self.drafts.append(draft)

    def send_status(self, status: dict[str, Any]) -> None:
        self.statuses.append(status)

    async def create_progress(self, token: str) -> None:
        self.tokens.append(token)

    async def apply_edit(self, title: str, edit: object) -> bool:
        self.edits.append((title, edit))
        return True

    def send_progress(self, token: int | str, value: object) -> None:
        self.progress.append((token, value))

    async def pull_configuration(self, folders: Sequence[str]) -> list[object]:
        return [self.configuration, *(None for _ in folders)]

    async def watch_configuration(self) -> None:
        """There is nothing to watch."""


class FakeClock:
    """Time stands still until `advance`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self._sleepers.append((self._now + seconds, event))
        await event.wait()

    def advance(self, seconds: float) -> None:
        """Move on, and wake whoever slept until then."""
        self._now += seconds
        for due, event in self._sleepers:
            if due <= self._now:
                event.set()
