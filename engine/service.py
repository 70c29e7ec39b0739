"""The engine process: its socket, its clients and its life from loading to gone.

Sockets belong to the asyncio side here, the model and all jobs to the loop's thread (`loop`); the two only exchange
messages. The socket listens while the model loads, so that a client learns at once that the engine is on its way.

    loading ──► ready ──► draining ──► gone        a load that fails, a Shutdown, a signal and idleness all drain

A step that does not end (`watchdog`) ends the process without draining. A socket that was removed is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import psutil

from engine.config import EngineConfig
from engine.connection import Connection
from engine.job import Monitored
from engine.ledger import Ledger
from engine.listener import Listener
from engine.loop import (
    CancelAsked,
    ClientLeft,
    CoreFactory,
    Counted,
    DrainAsked,
    EngineLoop,
    Loaded,
    LoadFailed,
    LoadingMoved,
    Outward,
    Replied,
    Stopped,
    Submitted,
    refusal_while_draining,
)
from engine.protocol.address import Address
from engine.protocol.errors import EngineError
from engine.protocol.messages import (
    Cancel,
    Facts,
    Failed,
    Fill,
    Hello,
    Loading,
    Ready,
    Reply,
    Request,
    Rewrite,
    Shutdown,
    Status,
    StatusReport,
)
from engine.request_checks import characters_of
from engine.watchdog import step_limit_s, until_stuck, whereabouts

if TYPE_CHECKING:
    from engine.metrics_server import MetricsServer

log = logging.getLogger(__name__)

# A step takes about a second at most; one that takes longer than this hangs, and is left behind.
DRAIN_LIMIT_S = 8.0
_LONGEST_TICK_S = 5.0
# More than anybody has editors; each may hold texts in memory.
MAX_CLIENTS = 256


class Service:
    """One engine at one address. `run` returns the exit status when the engine is to leave.

    `may_serve` says whether the address is still this engine's to serve at.
    """

    def __init__(
        self,
        config: EngineConfig,
        address: Address,
        core_factory: CoreFactory,
        clock: Callable[[], float] = time.monotonic,
        may_serve: Callable[[], bool] = lambda: True,
    ) -> None:
        self._config = config
        self._may_serve = may_serve
        self._address = address
        self._clock = clock
        self._loop = EngineLoop(core_factory, self._emit, clock)
        self._thread = threading.Thread(target=self._loop.run, name="engine-loop", daemon=True)
        self._state: Literal["loading", "ready", "draining"] = "loading"
        self._loading = Loading("starting", 0.0)
        self._facts: Facts | None = None
        self._monitored, self._monitored_at = Monitored(diffusion_share=config.diffusion_share), 0.0
        self.failure: EngineError | None = None
        self._began = clock()
        self._ledger = Ledger(self._began)
        self._clients: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_stuck(self) -> bool:
        """Whether the loop's thread outlived the drain; only the end of the process ends it then."""
        return self._thread.is_alive()

    async def open(self) -> None:
        """Listen. Raises EngineError(unsafe_address) where that cannot be done."""
        self._events = asyncio.get_running_loop()
        self._gone = asyncio.Event()
        self._loaded = asyncio.Event()
        self._listener = Listener(self._address)
        self._server = await self._listen()
        self._metrics = self._offer_metrics(self._config.metrics_port)
        log.info("serving %s at %s", self._config.model, self._address.path)

    async def run(self) -> int:
        """Load the model and serve until drained; `open` comes first. 0, or 1 if the model could not be loaded."""
        self._thread.start()
        watches = [asyncio.create_task(watch) for watch in (self._watch(), self._watch_steps())]
        try:
            await self._gone.wait()
        finally:
            for watch in watches:
                watch.cancel()
            self._stop_listening()
            await self._part()
            if self._metrics is not None:
                await asyncio.to_thread(self._metrics.close)
        return 1 if self.failure is not None else 0

    def drain(self, why: str) -> None:
        """Begin to leave: no new clients, no new jobs, the running ones cancelled."""
        if self._state == "draining":
            return
        log.info("leaving: %s", why)
        self._state = "draining"
        self._stop_listening()
        self._loop.post(DrainAsked())
        self._events.call_later(DRAIN_LIMIT_S, self._gone.set)

    def _offer_metrics(self, port: int) -> MetricsServer | None:
        if not port:
            return None
        from engine.metrics_server import MetricsServer

        try:
            return MetricsServer(port, self._report, self._events)
        except EngineError:
            self._stop_listening()
            raise

    async def _listen(self) -> asyncio.Server:
        if self._address.transport == "unix":
            return await asyncio.start_unix_server(self._enter, sock=self._listener.socket)
        return await asyncio.start_server(self._enter, sock=self._listener.socket)

    def _stop_listening(self) -> None:
        self._listener.remove()
        self._server.close()

    def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= MAX_CLIENTS:
            log.warning("a client was turned away: %d are connected", MAX_CLIENTS)
            writer.transport.abort()
            return
        task = asyncio.create_task(self._attend(Connection(next(self._numbers), reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attend(self, client: Connection) -> None:
        """One client, from its Hello until it leaves."""
        try:
            if await client.greet(self._listener.token):
                self._clients[client.number] = client
                self._introduce(client)
                async for request in client.requests():
                    self._take(client, request)
        finally:
            self._clients.pop(client.number, None)
            self._loop.post(ClientLeft(client.number))
            await client.close()

    def _introduce(self, client: Connection) -> None:
        if self.failure is not None:
            client.fail("", self.failure)
        elif self._state == "draining":
            client.send(refusal_while_draining(""))
        elif self._facts is not None:
            client.send(Ready(self._facts))
        else:
            client.send(self._loading)

    def _take(self, client: Connection, request: Request) -> None:
        match request:
            case Fill() | Rewrite():
                self._accept(client, request)
            case Cancel(id=job_id):
                self._loop.post(CancelAsked(client.number, job_id))
            case Status():
                client.send(self._report())
            case Shutdown():
                self.drain("a client asked for it")
            case Hello():
                client.send(_bad_request("", "the greeting is over"))

    def _accept(self, client: Connection, request: Fill | Rewrite) -> None:
        if self._state == "draining":
            client.send(refusal_while_draining(request.id))
        elif self._state == "loading":
            share = f"{self._loading.stage}, {self._loading.fraction:.0%}"
            message = f"the model is still loading ({share})"
            client.send(Failed(request.id, "loading", message, "ask again in a moment"))
        elif why := self._ledger.refusal(client.number, request.id, characters_of(request)):
            client.send(_bad_request(request.id, why))
        else:
            self._ledger.open(client.number, request.id, characters_of(request))
            self._loop.post(Submitted(client.number, request, self._clock()))

    def _report(self) -> StatusReport:
        now = self._clock()
        told = self._monitored.after(now - self._monitored_at)
        return StatusReport(
            state=self._state,
            facts=self._facts,
            uptime_s=now - self._began,
            idle_s=self._ledger.idle_s(now),
            idle_limit_s=self._config.idle_limit_s,
            clients=len(self._clients),
            jobs_running=self._ledger.running,
            jobs_done=self._ledger.done,
            jobs_cancelled=self._ledger.cancelled,
            jobs_failed=self._ledger.failed,
            memory_mib=psutil.Process().memory_info().rss / 2**20,
            routes=told.routes,
            breaker=told.breaker,
            diffusion_share=told.diffusion_share,
        )

    def _emit(self, outward: Outward) -> None:
        """Called on the loop's thread."""
        # The asyncio side is closed only after a drain that ran out of time, when nobody waits for this any more.
        with contextlib.suppress(RuntimeError):
            self._events.call_soon_threadsafe(self._hear, outward)

    def _hear(self, outward: Outward) -> None:
        match outward:
            case Replied(client=client, reply=reply):
                self._deliver(client, reply)
            case LoadingMoved(stage=stage, fraction=fraction):
                self._loading = Loading(stage, fraction)
                self._tell_everybody(self._loading)
            case Counted(monitored=monitored):
                self._monitored, self._monitored_at = monitored, self._clock()
            case Loaded(facts=facts):
                self._become_ready(facts)
            case LoadFailed(error=error):
                self._give_up(error)
            case Stopped():
                if self._state != "draining" and self.failure is None:
                    self.failure = EngineError("internal", "the engine's loop ended", "see the engine's log")
                self._gone.set()

    def _deliver(self, number: int, reply: Reply) -> None:
        if not self._ledger.settle(number, reply, self._clock()) or number not in self._clients:
            return
        client = self._clients[number]
        try:
            client.send(reply)
        except EngineError as error:
            client.fail(getattr(reply, "id", ""), EngineError("internal", error.message, "report it"))

    def _become_ready(self, facts: Facts) -> None:
        if self._state != "loading":
            return
        log.info("ready after %.1f s", self._clock() - self._began)
        self._facts = facts
        self._state = "ready"
        self._loaded.set()
        self._ledger.idle_since = self._clock()
        self._tell_everybody(Ready(facts))

    def _give_up(self, error: EngineError) -> None:
        self.failure = error
        self._tell_everybody(Failed("", error.kind, error.message, error.remedy))
        self.drain("the model could not be loaded")

    def _tell_everybody(self, reply: Reply) -> None:
        for client in self._clients.values():
            client.send(reply)

    async def _watch(self) -> None:
        """Leave when nobody has needed the engine for long; be found again when the way to it was removed."""
        limit = self._config.idle_limit_s
        while True:
            await asyncio.sleep(min(_LONGEST_TICK_S, limit / 4) if limit else _LONGEST_TICK_S)
            if self._state == "draining":
                continue
            if not self._listener.is_reachable():
                await self._listen_again()
            elif limit and self._state == "ready" and self._ledger.idle_s(self._clock()) >= limit:
                self.drain(f"no job for {limit:.0f} s")

    async def _listen_again(self) -> None:
        """Make the socket anew where a cleaner of temporary files or a person removed it; clients keep theirs."""
        if not self._may_serve():
            if not self._ledger.running:
                self.drain("its socket was removed, and so was its right to make another")
            return
        log.warning("the socket was removed; making it anew")
        # First the old one: what closes it may take away the path, and that will be the new one's.
        self._server.close()
        try:
            self._listener = Listener(self._address)
        except EngineError as error:
            self.drain(f"its socket was removed, and {error.message}")
            return
        self._server = await self._listen()

    async def _watch_steps(self) -> None:
        """Leave at once when a step hangs: who waits is told, and whoever asks next starts an engine that works."""
        await self._loaded.wait()
        assert self._facts is not None
        limit_s = step_limit_s(self._config.step_limit_s, self._facts)
        await until_stuck(lambda: self._loop.pulse, limit_s)
        if self._state == "draining":
            return
        log.error("a step has not ended for %.0f s, at %s", limit_s, whereabouts(self._thread.ident))
        self.failure = EngineError(
            "gone",
            f"a step of the engine did not end within {limit_s:.0f} s",
            "ask again; the engine is started anew when it is needed",
        )
        for client, job_id in self._ledger.open_jobs:
            self._deliver(client, Failed(job_id, "gone", self.failure.message, self.failure.remedy))
        self._tell_everybody(Failed("", "gone", self.failure.message, self.failure.remedy))
        self._state = "draining"
        self._loop.post(DrainAsked())
        self._gone.set()

    async def _part(self) -> None:
        """Tell the remaining clients that the engine leaves, and close their connections."""
        if self.failure is None:
            self._tell_everybody(refusal_while_draining(""))
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.join, 0 if self._ledger.running else 1.0)


def _bad_request(job_id: str, why: str) -> Failed:
    return Failed(job_id, "bad_request", why, "use a new id per request, and wait for answers")
