"""A team's engine (`lacuna engine serve`): the engine's own protocol over HTTP. See `engine.protocol.http`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER, payload_length
from engine.protocol.http import FACTS, JOBS, MEDIA_TYPE, MODEL_HEADER, PROTOCOL_HEADER, STATUS
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancelled,
    Done,
    Draft,
    Facts,
    Failed,
    Fill,
    Found,
    Ready,
    Reply,
    Rewrite,
    StatusReport,
)
from lsp_server.engine_connection import failure_of
from lsp_server.remote.dialect import News, TryAgain
from lsp_server.remote.endpoint import Endpoint
from lsp_server.remote.http_errors import is_passing, refusal_body, refused, retry_after_s

if TYPE_CHECKING:
    import httpx

# Another attempt at these may go better, on another replica or a little later.
_PASSING = frozenset({"gone", "draining", "loading", "overloaded", "quota_exceeded"})


class LacunaHttp:
    """See `Dialect`."""

    async def greet(self, client: httpx.AsyncClient, endpoint: Endpoint) -> LacunaTalk:
        """See `Dialect.greet`."""
        reply = await _asked(client, endpoint, FACTS)
        if not isinstance(reply, Ready):
            raise _another_kind(endpoint)
        return LacunaTalk(client, endpoint, reply.facts)


@dataclass(frozen=True, slots=True)
class LacunaTalk:
    """See `Talk`."""

    client: httpx.AsyncClient
    endpoint: Endpoint
    facts: Facts

    async def ask(self, request: Fill | Rewrite, on_news: Callable[[News], None]) -> Done:
        """See `Talk.ask`. A stream that broke is asked for once more at once: often only the connection was old."""
        import httpx

        # Encoded here, so that a text that cannot be sent fails before anything is.
        payload = codec.encode(request)[HEADER.size :]
        try:
            return await self._once(payload, on_news)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return await self._once(payload, on_news)

    async def report(self) -> StatusReport | None:
        """See `Talk.report`: the whole team's jobs."""
        reply = await _asked(self.client, self.endpoint, STATUS)
        return reply if isinstance(reply, StatusReport) else None

    async def _once(self, payload: bytes, on_news: Callable[[News], None]) -> Done:
        endpoint = self.endpoint
        async with self.client.stream(
            "POST", _url(endpoint, JOBS), content=payload, headers=_headers(endpoint)
        ) as response:
            await _require_frames(response, endpoint)
            async for reply in _replies(response, endpoint):
                match reply:
                    case Draft() | Found():
                        on_news(reply)
                    case Done():
                        return reply
                    case Failed():
                        raise _failure(reply, response)
                    case Cancelled():
                        break
                    case _:
                        raise _another_kind(endpoint)
        gone = EngineError("gone", f"{endpoint.host} left before it answered", "ask again in a moment")
        raise TryAgain(gone)


async def _asked(client: httpx.AsyncClient, endpoint: Endpoint, path: str) -> Reply:
    """The one reply to a question without a body. Raises EngineError, httpx.HTTPError."""
    async with client.stream("GET", _url(endpoint, path), headers=_headers(endpoint)) as response:
        await _require_frames(response, endpoint)
        async for reply in _replies(response, endpoint):
            if isinstance(reply, Failed):
                raise _failure(reply, response)
            return reply
    raise _another_kind(endpoint)


async def _replies(response: httpx.Response, endpoint: Endpoint) -> AsyncIterator[Reply]:
    """The messages of a response as they come. Raises EngineError for what is none of ours."""
    waiting = bytearray()
    async for part in response.aiter_bytes():
        waiting += part
        while len(waiting) >= HEADER.size:
            length = payload_length(bytes(waiting[: HEADER.size]))
            end = HEADER.size + length
            if len(waiting) < end:
                break
            payload = bytes(waiting[HEADER.size : end])
            del waiting[:end]
            if payload:
                yield codec.decode_reply(payload)
    if waiting:
        raise TryAgain(EngineError("gone", f"{endpoint.host} left in the middle of a word", "ask again in a moment"))


async def _require_frames(response: httpx.Response, endpoint: Endpoint) -> None:
    """Raise EngineError unless the response is one of a Lacuna engine, which tells even its refusals in frames."""
    if response.headers.get("content-type", "").partition(";")[0].strip() == MEDIA_TYPE:
        return
    status = response.status_code
    if status < 400 or status in (404, 405):
        raise _another_kind(endpoint)
    error = refused(status, endpoint.host, model=endpoint.model, body=await refusal_body(response))
    raise TryAgain(error, retry_after_s(response.headers)) if is_passing(status) else error


def _failure(reply: Failed, response: httpx.Response) -> EngineError:
    error = failure_of(reply)
    return TryAgain(error, retry_after_s(response.headers)) if error.kind in _PASSING else error


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {PROTOCOL_HEADER: str(PROTOCOL_VERSION), "Content-Type": "application/msgpack"}
    return headers | ({MODEL_HEADER: endpoint.model} if endpoint.model else {})


def _url(endpoint: Endpoint, path: str) -> str:
    """People give the address with the version behind it, as other servers want it, or without."""
    return endpoint.url.removesuffix("/v1") + path


def _another_kind(endpoint: Endpoint) -> EngineError:
    return EngineError(
        "bad_reply",
        f"{endpoint.host} does not answer as a Lacuna engine does",
        "look at `engine.url`, and at `engine.api` if another kind of server runs there",
    )
