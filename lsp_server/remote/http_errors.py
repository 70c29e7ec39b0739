"""From what goes wrong with HTTP to failures a person can act on. No message holds anything of a body's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    import httpx

_LARGEST_ERROR = 1 << 16
_PROXY = "look at `engine.url`, whether the server runs, and whether a firewall or proxy stands between"


_TOKEN = ("bad_token", "{} does not accept the token", "put a valid one into the file that `engine.tokenFile` names")
_TOO_LONG = ("window_exceeded", "the text is longer than {} takes", "select less, or lower `context.prefixChars`")
_REFUSED = ("bad_request", "{} refuses the request", "look at `engine.api` and `engine.model`")
_BUSY = ("overloaded", "{} has more to do than it can", "ask again in a moment")
_FAILED = ("unreachable", "{} failed", "try again, or look at that server's log")
_BY_STATUS: Mapping[int, tuple[str, str, str]] = {
    400: _REFUSED,
    401: _TOKEN,
    403: _TOKEN,
    404: ("model_missing", "{} does not know what was asked for", "look at `engine.url` and `engine.model`"),
    413: _TOO_LONG,
    414: _TOO_LONG,
    422: _REFUSED,
    429: _BUSY,
    503: _BUSY,
}


def lost_connection(fault: BaseException, host: str) -> EngineError:
    """The failure for a connection that could not be made, broke or fell silent."""
    import httpx

    if isinstance(fault, httpx.TimeoutException | TimeoutError):
        return EngineError(
            "timed_out", f"nothing came from {host} in time", "try again; raise `engine.timeoutMs` for a slow server"
        )
    if isinstance(fault, httpx.ConnectError) and "certificate" in str(fault).lower():
        return EngineError(
            "unsafe_address",
            f"the certificate of {host} is not trusted here",
            "have the server use one that is, or name your own authority in the environment: SSL_CERT_FILE",
        )
    return EngineError("unreachable", f"{host} cannot be reached", _PROXY)


def refused(status: int, host: str, *, model: str = "", body: bytes = b"") -> EngineError:
    """The failure for an HTTP status that is no success. Of its `body` only the kind of error is read."""
    if status == 503 and _is_about_loading(body.lower()):
        return EngineError("loading", f"{host} is loading its model", "ask again in a moment")
    if status in (400, 422, 500) and _is_too_long(body.lower()):
        kind, message, remedy = _TOO_LONG
    elif 300 <= status < 400:
        kind, message, remedy = "bad_reply", "{} sends requests elsewhere", "set `engine.url` to the final address"
    else:
        kind, message, remedy = _BY_STATUS.get(status, _FAILED)
    if kind == "model_missing" and model:
        message = "{} does not know the model " + repr(model)
    return EngineError(kind, f"{message.format(host)} (HTTP {status})", remedy)


async def refusal_body(response: httpx.Response) -> bytes:
    """What a refusal says, as far as anybody reads it. Raises httpx.HTTPError."""
    raw = bytearray()
    async for chunk in response.aiter_bytes():
        raw += chunk
        if len(raw) > _LARGEST_ERROR:
            break
    return bytes(raw)


def stream_failure(said: object, host: str) -> EngineError:
    """The failure that a server tells of in the middle of a stream, in OpenAI's form."""
    code = said.get("code") if isinstance(said, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return refused(status, host, body=str(said).encode("utf-8", "replace"))


def _is_too_long(body: bytes) -> bool:
    """Whether a refusal is about the length of the prompt: the codes and words of llama.cpp, OpenAI and vLLM."""
    return any(mark in body for mark in (b"exceed_context_size", b"context_length_exceeded", b"maximum context length"))


def _is_about_loading(body: bytes) -> bool:
    """Whether a server that is not available says that its model is on its way: llama.cpp's words, and others'."""
    return any(mark in body for mark in (b"loading model", b"model is loading", b"currently loading"))


def is_passing(status: int) -> bool:
    """Whether the same request may succeed when it is sent again."""
    return status in (408, 425, 429, 500, 502, 503, 504)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The pause in seconds that a reply asks for; dates are left to our own pauses."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isdecimal() and value.isascii() and len(value) < 10 else None
