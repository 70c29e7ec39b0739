"""The engine as the rest of the server sees it: `Engine`, and `EngineProcess`, the real one.

`EngineProcess` finds the engine of this user and model or starts it, keeps one connection to it, and tries again
with growing pauses when it is lost. A request while it is not ready fails at once: nobody who types waits for a
model to load.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.protocol.address import Address, Transport, engine_address
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Found, Loading, Rewrite, StatusReport
from lsp_server.engine_condition import EngineCondition, EngineState
from lsp_server.engine_connection import EngineConnection, EngineGone, Silence, connect
from lsp_server.engine_spawn import EngineChild, engine_command, spawn
from lsp_server.engine_upgrade import Upgrade
from lsp_server.sentences import sentences

log = logging.getLogger(__name__)

__all__ = ["Engine", "EngineGone", "EngineProcess", "EngineState", "Patience"]

# Trying again soon cannot help against these: a person has to do something first.
_LASTING_KINDS = frozenset(
    {
        *("model_missing", "model_corrupt", "model_unsupported", "no_space"),
        *("protocol_version", "bad_token", "unsafe_address"),
    }
)


class Engine(Protocol):
    """What features ask. One implementation talks to a process; tests script another."""

    @property
    def state(self) -> EngineState: ...

    @property
    def model(self) -> str:
        """The name or path of the model it was asked for."""
        ...

    @property
    def facts(self) -> Facts | None:
        """What the engine is, while it is ready."""
        ...

    @property
    def failure(self) -> EngineError | None:
        """Why its state is `failed`."""
        ...

    def start(self) -> None:
        """Begin to connect in the background, or to try again at once after a failure. Idempotent."""
        ...

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        """The request's result. `on_draft` hears drafts if the request `wants_drafts`, `on_found` the finished texts
        of one that wants several.

        Raises EngineError: kind loading when the engine is not ready and `wait` is false, the last failure's kind
        when it cannot be started, EngineGone when it died under the request. Cancelling the waiting task stops
        the engine's work on it.
        """
        ...

    async def status(self) -> StatusReport:
        """The engine's own report. Raises EngineGone when there is none to ask."""
        ...

    async def close(self) -> None:
        """Let go of the engine; it lives on for others."""
        ...

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """Call `callback(state, message)` once for every change from now on.

        That one is looked for is no change yet: an engine that is running already goes from `off` to `ready`.
        """
        ...

    def on_loading(self, callback: Callable[[Loading], None]) -> None:
        """Call `callback` with every step of the model's loading from now on."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for what, in seconds."""

    first_retry_s: float = 0.5
    longest_retry_s: float = 30.0
    lasting_retry_s: float = 300.0
    connect_s: float = 30.0
    load_s: float = 900.0
    # How often a server on another machine is asked whether it has loaded its model.
    loading_retry_s: float = 1.0
    poll_s: float = 0.03
    # From the end of a connection to the end of the process behind it.
    farewell_s: float = 1.0
    # A connection that held this long was sound, so the next loss starts from the shortest pause again.
    sound_after_s: float = 10.0
    silence: Silence = field(default_factory=Silence)

    def pause(self, failures: int, kind: str) -> float:
        """The pause after `failures` failures in a row (1 or more), the last of `kind`."""
        if kind in _LASTING_KINDS:
            return self.lasting_retry_s
        return float(min(self.longest_retry_s, self.first_retry_s * 2.0 ** min(failures - 1, 16)))


class EngineProcess:
    """The engine of this user and `model`, over a local socket. Belongs to one event loop."""

    def __init__(
        self,
        model: str,
        *,
        client: str = "lacuna-lsp",
        command: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        transport: Transport = "auto",
        patience: Patience | None = None,
    ) -> None:
        self._model = model
        self._client = client
        self._command = list(command) if command is not None else engine_command(model)
        self._env = dict(os.environ if env is None else env)
        self._transport = transport
        self._patience = patience or Patience()
        self._condition = EngineCondition()
        self._failure: EngineError | None = None
        self._connection: EngineConnection | None = None
        # The child that is on its way, and those that once got so far that somebody could connect.
        self._child: EngineChild | None = None
        self._arrived: list[EngineChild] = []
        self._task: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._upgrade = Upgrade()
        self._loading_listeners: list[Callable[[Loading], None]] = []

    @property
    def state(self) -> EngineState:
        return self._condition.state

    @property
    def model(self) -> str:
        return self._model

    @property
    def failure(self) -> EngineError | None:
        return self._failure if self._condition.state == "failed" else None

    @property
    def facts(self) -> Facts | None:
        return self._connection.facts if self._connection is not None and self._is_live() else None

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        self._condition.on_change(callback)

    def on_loading(self, callback: Callable[[Loading], None]) -> None:
        self._loading_listeners.append(callback)

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._look()
            self._task = asyncio.create_task(self._keep_connected())
        elif self._condition.state == "failed":
            self._look()
            self._asked.set()

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        if self._condition.state == "off":
            self.start()
        if wait:
            await self.ready()
        if self._condition.state == "failed" and self._failure is not None:
            raise self._failure
        if self._connection is None or not self._is_live():
            message = "the engine went away" if self._condition.state == "ready" else self._condition.message
            raise EngineError("loading", message, "ask again in a moment")

        def on_news(news: Draft | Found) -> None:
            listener: Callable[[Any], None] | None = on_draft if isinstance(news, Draft) else on_found
            if listener is not None:
                listener(news)

        return await self._connection.submit(request, on_news)

    async def ready(self) -> Facts:
        """Wait until the engine is ready, starting it if it is off. Raises the EngineError it failed with."""
        if self._condition.state == "off":
            self.start()
        while self._condition.state in ("starting", "loading") or (
            self._condition.state == "ready" and not self._is_live()
        ):
            await self._condition.changed()
        if (facts := self.facts) is not None:
            return facts
        raise self._failure or EngineGone()

    async def status(self) -> StatusReport:
        if self._connection is None:
            raise EngineGone("no engine is connected")
        return await self._connection.status()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._disconnect()
        for child in (*self._arrived, *filter(None, [self._child])):
            child.let_go()
        self._condition.move("off", "closed")

    def _is_live(self) -> bool:
        """Ready, and not lost without `_keep_connected` having had its turn to say so."""
        connection = self._connection
        return self._condition.state == "ready" and connection is not None and connection.phase == "ready"

    async def _keep_connected(self) -> None:
        failures = 0
        while True:
            self._asked.clear()
            began = asyncio.get_running_loop().time()
            reason = await self._live_once()
            await self._disconnect()
            if reason.kind == "draining" and self._condition.state == "ready":
                # It left of its own accord (idle, stopped); it is started again when somebody needs it.
                self._condition.move("off", reason.message)
                return
            lived = asyncio.get_running_loop().time() - began
            sound = self._condition.state == "ready" and lived >= self._patience.sound_after_s
            failures = 1 if sound else failures + 1
            self._tell_loss(reason)
            await self._pause(self._patience.pause(failures, reason.kind))

    async def _live_once(self) -> EngineError:
        """Connect, serve until the connection ends, and say why it ended or why there was none."""
        try:
            await self._arrive()
        except EngineError as fault:
            return await self._reason_of(fault)
        except TimeoutError:
            return EngineError("internal", "the model does not finish loading", "run `lacuna engine stop`")
        except Exception as fault:  # Whatever it is, the editor goes on and a later try may work.
            log.error("connecting to the engine failed", exc_info=fault)
            return EngineError("internal", f"connecting failed ({type(fault).__name__})", "see the server's log")
        self._failure = None
        self._condition.move("ready", "ready")
        assert self._connection is not None
        return await self._connection.lost()

    async def _reason_of(self, fault: EngineError) -> EngineError:
        """Why an engine of ours that went away while it loaded did so: its own words, or the signal that ended it."""
        if not isinstance(fault, EngineGone) or not self._arrived:
            return fault
        child = self._arrived[-1]
        for _ in range(round(self._patience.farewell_s / self._patience.poll_s)):
            if (status := child.exit_status()) is not None:
                return child.failure() if status else fault
            await asyncio.sleep(self._patience.poll_s)
        return fault

    async def _arrive(self) -> None:
        """Connect to an engine that is ready, and of no older version than this client."""
        while True:
            self._connection = await self._reach()
            if self._condition.state != "failed" and self._connection.phase != "ready":
                self._condition.move("loading", "loading the model")
            async with asyncio.timeout(self._patience.load_s):
                facts = await self._connection.ready()
            if not self._upgrade.is_due(facts):
                return
            self._condition.move("starting", f"replacing the engine of version {facts.engine_version}")
            await self._upgrade.retire(self._connection)
            await self._disconnect()

    async def _reach(self) -> EngineConnection:
        """A greeted connection to the running engine, or to one started here if none runs."""
        address = engine_address(self._model, self._env, self._transport)
        try:
            async with asyncio.timeout(self._patience.connect_s):
                while True:
                    try:
                        connection = await connect(address, self._client, self._tell_loading, self._patience.silence)
                    except EngineGone:
                        self._ensure_child()
                    else:
                        self._welcome_child()
                        return connection
                    await asyncio.sleep(self._patience.poll_s)
        except TimeoutError:
            raise _unreachable(address) from None

    def _ensure_child(self) -> None:
        """Start an engine unless one of ours is on its way. Raises EngineError when ours left without serving."""
        self._arrived = [child for child in self._arrived if child.exit_status() is None]
        status = self._child.exit_status() if self._child is not None else None
        if self._child is not None and status is None:
            return
        if self._child is not None and status != 0:
            child, self._child = self._child, None
            raise child.failure()
        if self._condition.state != "failed":
            self._condition.move("starting", "starting the engine")
        # Status 0: it found another engine serving, which has left since; so it is our turn again.
        self._child = spawn(self._command, self._model, self._env)

    def _welcome_child(self) -> None:
        if self._child is not None:
            self._arrived.append(self._child)
            self._child = None

    def _tell_loading(self, loading: Loading) -> None:
        for callback in self._loading_listeners:
            callback(loading)

    def _tell_loss(self, reason: EngineError) -> None:
        if self._condition.state == "ready":
            self._condition.move("starting", "the engine went away; starting it again")
            return
        self._failure = reason
        self._condition.move("failed", sentences(reason.message, reason.remedy))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _look(self) -> None:
        """On the way, without a word: one that runs already is there in a moment."""
        self._condition.enter("starting", "the engine is being looked for")


def _unreachable(address: Address) -> EngineError:
    return EngineError(
        "internal",
        f"no engine answered at {address.path}",
        "run `lacuna engine run` in a terminal to see why, or `lacuna doctor`",
    )
