"""The engine that the settings select: one `Engine` for the session, whichever stands behind it at the moment.

Settings come after the server has begun, and change while it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Found, Loading, Rewrite, StatusReport
from lsp_server.engine_client import Engine, EngineState
from lsp_server.remote.choice import EngineChoice, choice_of
from lsp_server.settings import Settings


class SelectedEngine:
    """See the module. `make` gives the engine of a choice; the first one is the local engine. One event loop."""

    def __init__(self, make: Callable[[EngineChoice], Engine]) -> None:
        self._make = make
        self._choice = EngineChoice()
        self._listeners: list[Callable[[EngineState, str], None]] = []
        self._loading_listeners: list[Callable[[Loading], None]] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._engine = self._made()

    def select(self, settings: Settings) -> bool:
        """Have the engine that `settings` ask for; whether it is another one than before.

        The one before is let go: its jobs fail as those of an engine that went away. The new one is started if the
        old one was.
        """
        choice = choice_of(settings)
        if choice == self._choice:
            return False
        before, self._choice = self._engine, choice
        self._engine = self._made()
        task = asyncio.create_task(before.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        # Where none has begun yet, nobody has heard of another one.
        self._tell(self._engine, "off", "" if before.state == "off" else "another engine was chosen")
        if before.state != "off":
            self._engine.start()
        return True

    @property
    def state(self) -> EngineState:
        return self._engine.state

    @property
    def model(self) -> str:
        return self._engine.model

    @property
    def facts(self) -> Facts | None:
        return self._engine.facts

    @property
    def failure(self) -> EngineError | None:
        return self._engine.failure

    def start(self) -> None:
        self._engine.start()

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        return await self._engine.submit(request, on_draft, on_found=on_found, wait=wait)

    async def status(self) -> StatusReport:
        return await self._engine.status()

    async def close(self) -> None:
        await asyncio.gather(self._engine.close(), *self._leaving)

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        self._listeners.append(callback)

    def on_loading(self, callback: Callable[[Loading], None]) -> None:
        self._loading_listeners.append(callback)

    def _made(self) -> Engine:
        engine = self._make(self._choice)
        engine.on_state(lambda state, message: self._tell(engine, state, message))
        engine.on_loading(lambda loading: self._tell_loading(engine, loading))
        return engine

    def _tell(self, engine: Engine, state: EngineState, message: str) -> None:
        """What an engine says that was let go is no news."""
        if engine is self._engine:
            for callback in self._listeners:
                callback(state, message)

    def _tell_loading(self, engine: Engine, loading: Loading) -> None:
        if engine is self._engine:
            for callback in self._loading_listeners:
                callback(loading)
