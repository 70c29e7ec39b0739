"""What a team's engine says over HTTP: `Gate`, between requests and the engines that serve them.

    POST /v1/jobs     a Fill or Rewrite as the codec's msgpack; answered by a stream of frames, the last one final
    GET  /v1/facts    a Ready frame: what the engine is          GET /v1/status   a StatusReport frame
    GET  /healthz     "ok", without a token

Every other request needs `Authorization: Bearer TOKEN` and `Lacuna-Protocol: N`; `Lacuna-Model` names the model where
several are served. What is refused before it began is one Failed frame under an HTTP status that says the same. Owns
tokens and quotas; jobs are run by a `Pool`. No document text is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER, MAX_FRAME_BYTES
from engine.protocol.http import (
    FACTS,
    GOES_ON,
    GOES_ON_EVERY_S,
    HEALTH,
    JOBS,
    MEDIA_TYPE,
    MODEL_HEADER,
    PROTOCOL_HEADER,
    STATUS,
)
from engine.protocol.messages import PROTOCOL_VERSION, Done, Facts, Failed, Fill, Ready, Rewrite, StatusReport
from engine.team.access import TokenBook, bearer
from engine.team.quotas import QuotaBook, Refusal

_HTTP_STATUS: Mapping[str, int] = {
    "bad_token": 401,
    "quota_exceeded": 429,
    **dict.fromkeys(("bad_request", "bad_frame", "unknown_message", "protocol_version"), 400),
    **dict.fromkeys(("loading", "draining", "gone"), 503),
}


class Pool(Protocol):
    """The engines behind the gate."""

    def run(self, model: str, user: str, payload: bytes) -> AsyncGenerator[bytes, None]:
        """The frames of a job's replies. `payload` has been decoded once, so it is a request. Raises EngineError.

        Closing it cancels the job.
        """
        ...

    async def facts(self, model: str) -> Facts:
        """What the engine of a model is. Raises EngineError."""
        ...


class Gate:
    """Answers HTTP requests. `models`: those that are served, the default one first. `book`: None until it is told."""

    def __init__(
        self,
        pool: Pool,
        book: TokenBook | None,
        quotas: QuotaBook,
        models: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._book = book
        self._quotas = quotas
        self._models = tuple(models)
        self._clock = clock
        self._began = self._last = clock()
        self._ended = {"done": 0, "cancelled": 0, "failed": 0}

    def admit(self, book: TokenBook) -> None:
        """From now on those in `book` may come, and nobody else."""
        self._book = book

    async def answer(self, request: HttpRequest) -> Response:
        """The response to any request."""
        path = request.url.path
        if path == HEALTH:
            return PlainTextResponse("ok")
        routes = {
            ("POST", JOBS): self._jobs,
            ("GET", FACTS): self._facts,
            ("GET", STATUS): self._status,
        }
        route = routes.get((request.method, path))
        if route is None:
            known = any(path == there for _, there in routes)
            return PlainTextResponse("see docs/team.md for what there is", 405 if known else 404)
        try:
            return await route(request, self._user(request), self._model(request))
        except EngineError as error:
            return refusal("", error)

    def _user(self, request: HttpRequest) -> str:
        token = bearer(request.headers.get("authorization", ""))
        # Who brings no token at all need not wait to hear so.
        if token and self._book is None:
            raise EngineError("loading", "the engine has just started", "ask again in a moment")
        user = self._book.user_of(token) if self._book is not None else None
        if user is None:
            raise EngineError(
                "bad_token",
                "this engine does not know the token",
                "ask who runs it for a token, and name its file in the setting engine.tokenFile",
            )
        theirs = request.headers.get(PROTOCOL_HEADER, "")
        if theirs != str(PROTOCOL_VERSION):
            raise EngineError(
                "protocol_version",
                f"the client speaks protocol {theirs[:8] or 'unknown'}, this engine speaks {PROTOCOL_VERSION}",
                "use a Lacuna of the version that the engine has",
            )
        return user

    def _model(self, request: HttpRequest) -> str:
        asked = request.headers.get(MODEL_HEADER, "") or self._models[0]
        if asked not in self._models:
            raise EngineError(
                "model_missing",
                f"this engine does not serve {asked[:64]!r}",
                f"set engine.model to one of {', '.join(self._models)}",
            )
        return asked

    async def _facts(self, request: HttpRequest, user: str, model: str) -> Response:  # noqa: ARG002
        return Response(codec.encode(Ready(await self._pool.facts(model))), media_type=MEDIA_TYPE)

    async def _status(self, request: HttpRequest, user: str, model: str) -> Response:  # noqa: ARG002
        return Response(codec.encode(self._report(await self._pool.facts(model))), media_type=MEDIA_TYPE)

    async def _jobs(self, request: HttpRequest, user: str, model: str) -> Response:
        payload = await _body(request)
        job = codec.decode_request(payload)
        if not isinstance(job, Fill | Rewrite):
            raise EngineError("unknown_message", "only a Fill or a Rewrite is a job", "cancel by closing the response")
        refused = self._quotas.begin(user, self._clock())
        if refused is not None:
            return _over_quota(job.id, refused)
        frames = self._frames(model, user, job.id, payload)
        return _JobResponse(frames, lambda ending: self._end(user, ending))

    async def _frames(self, model: str, user: str, job: str, payload: bytes) -> AsyncGenerator[bytes, None]:
        """The frames of a job to its end, however it ends."""
        try:
            async with contextlib.aclosing(self._pool.run(model, user, payload)) as frames:
                async for frame in frames:
                    yield frame
        except EngineError as error:
            yield codec.encode(Failed(job, error.kind, error.message, error.remedy))

    def _end(self, user: str, last_frame: bytes) -> None:
        """Close the books on a job; one whose final reply was not sent counts as cancelled."""
        last = codec.decode_reply(last_frame[HEADER.size :]) if last_frame else None
        ending = "failed" if isinstance(last, Failed) else "done" if isinstance(last, Done) else "cancelled"
        self._ended[ending] += 1
        self._quotas.end(user)
        self._last = self._clock()

    def _report(self, facts: Facts) -> StatusReport:
        """The whole of it, over all replicas. A team's engine never leaves; memory is each replica's own affair."""
        running = self._quotas.running
        return StatusReport(
            state="ready",
            facts=facts,
            uptime_s=self._clock() - self._began,
            idle_s=0.0 if running else self._clock() - self._last,
            idle_limit_s=0.0,
            clients=self._quotas.busy_users,
            jobs_running=running,
            jobs_done=self._ended["done"],
            jobs_cancelled=self._ended["cancelled"],
            jobs_failed=self._ended["failed"],
            memory_mib=0.0,
        )


class _JobResponse(StreamingResponse):
    """The stream of a job. on_end: called with the last frame sent, once, whatever becomes of the stream."""

    def __init__(self, frames: AsyncGenerator[bytes, None], on_end: Callable[[bytes], None]) -> None:
        self._frames = frames
        self._on_end = on_end
        self._last = b""
        super().__init__(self._noted(), media_type=MEDIA_TYPE)

    async def _noted(self) -> AsyncIterator[bytes]:
        async for frame in going_on(self._frames):
            yield frame
            self._last = frame if frame != GOES_ON else self._last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. A client that leaves ends the job at once."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end(self._last)
            await self._frames.aclose()


async def going_on(frames: AsyncGenerator[bytes, None], every_s: float = GOES_ON_EVERY_S) -> AsyncIterator[bytes]:
    """The frames, and `GOES_ON` wherever none came for so long: who waits then knows, and so do proxies between."""
    waiting: asyncio.Future[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(frames))
            if not (await asyncio.wait({waiting}, timeout=every_s))[0]:
                yield GOES_ON
                continue
            came, waiting = waiting, None
            try:
                frame = came.result()
            except StopAsyncIteration:
                return
            yield frame
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)


async def _body(request: HttpRequest) -> bytes:
    """The body, as far as a frame may reach. Raises EngineError(bad_frame) beyond."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_FRAME_BYTES:
            raise EngineError("bad_frame", f"a request may have {MAX_FRAME_BYTES} bytes", "send less text")
        parts.append(part)
    return b"".join(parts)


def refusal(job: str, error: EngineError) -> Response:
    """A request that never began, as one Failed frame."""
    job = getattr(error, "job_id", job) or job
    frame = codec.encode(Failed(job, error.kind, error.message, error.remedy))
    return Response(frame, _HTTP_STATUS.get(error.kind, 500), media_type=MEDIA_TYPE)


def _over_quota(job: str, refused: Refusal) -> Response:
    remedy = f"wait {refused.retry_s} s, or ask who runs the engine for a larger share"
    response = refusal(job, EngineError("quota_exceeded", refused.why, remedy))
    response.headers["Retry-After"] = str(refused.retry_s)
    return response
