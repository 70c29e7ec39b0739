"""One connection to an engine: handshake, and replies matched to what was asked.

Owns a socket and what waits on it. Knows nothing of starting engines or trying again (see `engine_client`).
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.protocol import codec
from engine.protocol.address import LOOPBACK, Address, read_endpoint, require_private
from engine.protocol.errors import FAILURE_KINDS, EngineError
from engine.protocol.framing import receive_frame
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Cancelled,
    Done,
    Draft,
    Facts,
    Failed,
    Fill,
    Found,
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
from engine.protocol.peer import peer_process, require_same_user
from engine.protocol.stillness import Stillness

log = logging.getLogger(__name__)

Phase = Literal["greeting", "loading", "ready", "lost"]
# What hears of a job while it runs.
OnNews = Callable[[Draft | Found], None]
GREETING_LIMIT_S = 5.0
CLOSING_LIMIT_S = 1.0
# What an engine that reads nothing any more is sent waits here; a few texts may, all that is typed may not.
MOST_WAITING_BYTES = 16 << 20
# Four times as many as the engine takes: the others are cancelled ones that it has not answered yet.
MOST_UNANSWERED = 256


class EngineGone(EngineError):  # noqa: N818 - an outcome of a request, named as the other outcomes are
    """The connection ended before the answer came: the engine died, or was never there."""

    def __init__(self, message: str = "the engine went away before it answered") -> None:
        super().__init__("gone", message, "ask again; the engine is started anew when it is needed")


class EngineMute(EngineGone):
    """Somebody holds the engine's place and says nothing: it is suspended, or hangs. For who waits it is gone.

    `pid` is its process, where the system tells.
    """

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Silence:
    """How long an engine that is waited for may say nothing, in seconds: then it is asked how it is, then given up.

    It answers that question at once whatever it computes; one that does not is suspended, or hangs.
    """

    asked_after_s: float = 5.0
    lost_after_s: float = 15.0
    look_every_s: float = 1.0


class _Job:
    """A submitted request that has no final reply yet."""

    def __init__(self, on_news: OnNews | None) -> None:
        self.result: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self.on_news = on_news
        self.abandoned = False


class EngineConnection:
    """Requests in, answers out, over one open stream. Made by `connect`; belongs to one event loop."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_loading: Callable[[Loading], None] | None = None,
        silence: Silence | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_loading = on_loading
        self._jobs: dict[str, _Job] = {}
        # Who asked for the reports that are on their way, in order; None is this connection itself.
        self._reports: list[asyncio.Future[StatusReport] | None] = []
        self._heard = 0
        self._fault: EngineError | None = None
        self._moved = asyncio.Event()
        self.phase: Phase = "greeting"
        self.facts: Facts | None = None
        self._reading = asyncio.create_task(self._read_replies())
        self._listening = asyncio.create_task(self._watch_silence(silence or Silence()))

    async def ready(self) -> Facts:
        """Wait until the model is loaded. Raises EngineError as the engine put it, EngineGone if it left."""
        while self.facts is None:
            if self.phase == "lost":
                raise self._reason()
            await self._movement()
        return self.facts

    async def greeted(self) -> None:
        """Wait until the engine has answered the Hello. Raises EngineError as `ready` does."""
        while self.phase == "greeting":
            await self._movement()
        if self.phase == "lost":
            raise self._reason()

    async def lost(self) -> EngineError:
        """Wait until the connection has ended; the reason the engine gave, or EngineGone."""
        while self.phase != "lost":
            await self._movement()
        return self._reason()

    async def submit(self, request: Fill | Rewrite, on_news: OnNews | None) -> Done:
        """Ask and wait. Raises EngineError, EngineGone. Cancelling the waiting task cancels the job."""
        if request.id in self._jobs:
            raise EngineError("bad_request", f"job {request.id!r} is still running", "use a new id per request")
        job = _Job(on_news)
        self._write(request)
        self._jobs[request.id] = job
        try:
            return await asyncio.shield(job.result)
        except asyncio.CancelledError:
            self._abandon(request.id, job)
            raise

    async def status(self) -> StatusReport:
        """Ask the engine how it is. Raises EngineGone."""
        report: asyncio.Future[StatusReport] = asyncio.get_running_loop().create_future()
        self._write(Status())
        self._reports.append(report)
        return await report

    async def shutdown(self) -> None:
        """Ask the engine to leave, and wait until it has closed the connection."""
        self._write(Shutdown())
        await self.lost()

    async def close(self) -> None:
        """End the connection; the engine cancels what it still ran for it."""
        tasks = (self._reading, self._listening)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSING_LIMIT_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    def _write(self, request: Request) -> None:
        # Waiting for room is left out on purpose: a request is in the buffer whole, and a cancel follows at once.
        frame = codec.encode(request)
        if self.phase == "lost":
            raise self._reason()
        waiting = self._writer.transport.get_write_buffer_size()
        if waiting > MOST_WAITING_BYTES or len(self._jobs) >= MOST_UNANSWERED:
            raise EngineGone("the engine takes and answers nothing at present")
        self._writer.write(frame)

    def _abandon(self, job_id: str, job: _Job) -> None:
        job.abandoned = True
        job.on_news = None
        if self.phase != "lost" and not job.result.done():
            self._writer.write(codec.encode(Cancel(job_id)))

    async def _watch_silence(self, silence: Silence) -> None:
        """Ask an engine that is waited for and says nothing how it is; if it says nothing still, end the connection."""
        asks = Stillness(silence.asked_after_s, silence.look_every_s)
        gives_up = Stillness(silence.lost_after_s, silence.look_every_s)
        while self.phase != "lost":
            is_waited_for = self._jobs or self._reports or self.phase == "loading"
            mark = self._heard if is_waited_for else None
            if asks.look(mark) and None not in self._reports:
                self._write(Status())
                self._reports.append(None)
            if gives_up.look(mark):
                pid = self.facts.pid if self.facts is not None else None
                self._fault = EngineMute("the engine does not answer; it is suspended, or hangs", pid)
                self._reading.cancel()
                return
            await asyncio.sleep(silence.look_every_s)

    async def _read_replies(self) -> None:
        try:
            while (payload := await receive_frame(self._reader)) is not None:
                self._heard += 1
                self._take(codec.decode_reply(payload))
        except EngineError as fault:
            self._fault = self._fault or fault
        finally:
            self._lose()

    def _take(self, reply: Reply) -> None:
        match reply:
            case Draft(id=job_id) | Found(id=job_id):
                self._tell_news(job_id, reply)
            case Done(id=job_id) | Cancelled(id=job_id):
                self._settle(job_id, reply)
            case Failed(id=""):
                self._fault = failure_of(reply)
            case Failed(id=job_id):
                self._settle(job_id, reply)
            case StatusReport():
                self._tell_report(reply)
            case Loading():
                self._move("loading")
                if self._on_loading is not None:
                    self._on_loading(reply)
            case Ready(facts=facts):
                self.facts = facts
                self._move("ready")

    def _tell_news(self, job_id: str, news: Draft | Found) -> None:
        job = self._jobs.get(job_id)
        if job is None or job.on_news is None:
            return
        try:
            job.on_news(news)
        except Exception as fault:  # noqa: BLE001 - a listener's fault must not end every other request
            log.warning("a draft listener failed (%s); it hears no more drafts", type(fault).__name__)
            job.on_news = None

    def _settle(self, job_id: str, reply: Done | Cancelled | Failed) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None or job.abandoned or job.result.done():
            return
        if isinstance(reply, Done):
            job.result.set_result(reply)
        elif isinstance(reply, Failed):
            job.result.set_exception(failure_of(reply))
        else:
            job.result.set_exception(EngineError("draining", "the engine cancelled the job", "ask again"))

    def _tell_report(self, report: StatusReport) -> None:
        # One that is not waited for any more keeps its place: the reports come in the order they were asked for.
        asked = self._reports.pop(0) if self._reports else None
        if asked is not None and not asked.done():
            asked.set_result(report)

    def _lose(self) -> None:
        self._listening.cancel()
        jobs = [job for job in self._jobs.values() if not job.abandoned]
        self._jobs.clear()
        waiting: list[asyncio.Future[Done] | asyncio.Future[StatusReport]] = [job.result for job in jobs]
        waiting += filter(None, self._reports)
        gone = self._fault if isinstance(self._fault, EngineGone) else EngineGone()
        for future in waiting:
            if not future.done():
                # One each: who raises it adds a traceback to it.
                future.set_exception(copy.copy(gone))
        self._reports = []
        self._writer.close()
        self._move("lost")

    def _reason(self) -> EngineError:
        return self._fault or EngineGone()

    def _move(self, phase: Phase) -> None:
        self.phase = phase
        self._moved.set()
        self._moved = asyncio.Event()

    async def _movement(self) -> None:
        await self._moved.wait()


async def connect(
    address: Address,
    client: str,
    on_loading: Callable[[Loading], None] | None = None,
    silence: Silence | None = None,
) -> EngineConnection:
    """Open a connection to the engine at `address` and greet it; the model may still be loading.

    Raises EngineGone when nobody serves there, EngineMute when somebody does and says nothing,
    EngineError(protocol_version | bad_token | unsafe_address | ...) when the one who does cannot be talked to.
    """
    try:
        for directory in {address.directory, address.lock.parent}:
            require_private(directory)
        reader, writer, token = await _open(address)
    except (TimeoutError, BlockingIOError):
        # Its queue of connections is full, and nobody takes any out of it.
        raise EngineMute(_unanswered(address)) from None
    except OSError:
        raise EngineGone(f"no engine for {address.model} is running") from None
    try:
        require_same_user(writer.get_extra_info("socket"))
    except EngineError:
        writer.transport.abort()
        raise
    connection = EngineConnection(reader, writer, on_loading, silence)
    try:
        writer.write(codec.encode(Hello(PROTOCOL_VERSION, client, token)))
        async with asyncio.timeout(GREETING_LIMIT_S):
            await connection.greeted()
    except TimeoutError:
        pid = peer_process(writer.get_extra_info("socket"))
        await connection.close()
        raise EngineMute(_unanswered(address), pid) from None
    except BaseException:
        await connection.close()
        raise
    return connection


def failure_of(reply: Failed) -> EngineError:
    """The error a `Failed` stands for."""
    kind = reply.kind if reply.kind in FAILURE_KINDS else "internal"
    return EngineError(kind, reply.message, reply.remedy)


def _unanswered(address: Address) -> str:
    return f"the engine for {address.model} runs but does not answer"


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
    async with asyncio.timeout(GREETING_LIMIT_S):
        if address.transport == "unix":
            return *await asyncio.open_unix_connection(address.path), ""
        endpoint = read_endpoint(address.path)
        return *await asyncio.open_connection(LOOPBACK, endpoint.port), endpoint.token
