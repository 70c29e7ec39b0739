"""How an engine is, and who is told when that changes. Knows neither processes nor connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

log = logging.getLogger(__name__)

EngineState = Literal["off", "starting", "loading", "ready", "failed"]


class EngineCondition:
    """A state with the message that goes with it. Belongs to one event loop."""

    def __init__(self) -> None:
        self.state: EngineState = "off"
        self.message = ""
        self._listeners: list[Callable[[EngineState, str], None]] = []
        self._changed = asyncio.Event()

    def on_change(self, callback: Callable[[EngineState, str], None]) -> None:
        """Call `callback(state, message)` once for every `move` from now on."""
        self._listeners.append(callback)

    def move(self, state: EngineState, message: str) -> None:
        """Be in `state` from now on, and tell it, unless nothing is new."""
        if (state, message) == (self.state, self.message):
            return
        self.enter(state, message)
        for callback in self._listeners:
            try:
                callback(state, message)
            except Exception as fault:  # One listener must not cost the connection.
                log.error("a listener of the engine's state failed", exc_info=fault)

    def enter(self, state: EngineState, message: str) -> None:
        """Be in `state` without a word to the listeners; who waits is woken."""
        self.state, self.message = state, message
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()
