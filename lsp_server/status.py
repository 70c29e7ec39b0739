"""lacuna/status: how the engine is, told at each change to clients that show it in a place of their own.

`{state, message, remedy, percent, model}`. `state` is `idle` (no engine is needed yet, or it has left for want of
work), `starting`, `loading` (with a `percent` where it is known, null otherwise), `ready`, `busy` (work goes on for
longer than `BUSY_AFTER_S`) or `failed`, which has a `remedy`. `message` is a sentence or empty; nothing in it quotes a
document. `model` is what the engine calls its model once it is ready, and the name it is asked for until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal

from engine.protocol.messages import Loading
from lsp_server.client import Editor
from lsp_server.clock import Clock
from lsp_server.engine_client import Engine, EngineState
from lsp_server.engine_progress import percent_of, stage_of
from lsp_server.sentences import capitalised, sentences

# What is done sooner need not be seen.
BUSY_AFTER_S = 0.1

State = Literal["idle", "starting", "loading", "ready", "busy", "failed"]


@dataclass(frozen=True, slots=True)
class Status:
    """What is told; see the module."""

    state: State
    message: str
    remedy: str
    percent: int | None
    model: str


class StatusFeed:
    """Tells the editor of each change from `begin` on, if `wants` says so."""

    def __init__(self, editor: Editor, clock: Clock, engine: Engine, wants: Callable[[], bool]) -> None:
        self._editor = editor
        self._clock = clock
        self._engine = engine
        self._wants = wants
        self._state: EngineState = engine.state
        self._message = ""
        self._loading: Loading | None = None
        self._jobs = 0
        self._is_busy = False
        self._waiting: asyncio.Task[None] | None = None
        self._begun = False
        self._told: Status | None = None

    def begin(self) -> None:
        """From now on the editor may be told; it is told how things are."""
        self._begun = True
        self._tell()

    def moved(self, state: EngineState, message: str) -> None:
        """The engine's state is `state` from now on."""
        self._state, self._message, self._loading = state, message, None
        self._tell()

    def heard(self, loading: Loading) -> None:
        """The engine told how far it is."""
        self._loading = loading
        self._tell()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Around what the engine does for this editor."""
        self._jobs += 1
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._become_busy())
        try:
            yield
        finally:
            self._jobs -= 1
            if not self._jobs:
                self._waiting.cancel()
                self._waiting, self._is_busy = None, False
                self._tell()

    async def _become_busy(self) -> None:
        await self._clock.sleep(BUSY_AFTER_S)
        self._is_busy = True
        self._tell()

    def _tell(self) -> None:
        status = self._status()
        if self._begun and self._wants() and status != self._told:
            self._told = status
            self._editor.send_status(asdict(status))

    def _status(self) -> Status:
        facts, failure = self._engine.facts, self._engine.failure
        model = facts.model if facts is not None and self._state == "ready" else self._engine.model
        if self._state == "failed":
            message, remedy = (failure.message, failure.remedy) if failure is not None else (self._message, "")
            return Status("failed", _sentence(message), _sentence(remedy), None, model)
        if self._state == "ready":
            return Status("busy" if self._is_busy else "ready", "", "", None, model)
        if self._state == "loading" and self._loading is not None:
            message = f"loading the model: {stage_of(self._loading)}"
            return Status("loading", _sentence(message), "", percent_of(self._loading), model)
        return Status("idle" if self._state == "off" else self._state, _sentence(self._message), "", None, model)


def _sentence(text: str) -> str:
    return capitalised(sentences(text))
