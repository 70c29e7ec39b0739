"""A scripted HTTP server in this process: answers what a test says, remembers what it was asked and who hung up.

It speaks as much of HTTP/1.1 as a client of OpenAI's API needs: one request a connection, bodies of known length in,
chunked streams out.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A scripted reply. With `events` it is a stream of them; `hold_before` the event of that number waits for
    `Script.release`. `cut` ends the stream without its last chunk, `is_silent` never answers at all."""

    status: int = 200
    body: Any = None
    events: Sequence[Any] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    hold_before: int | None = None
    cut: bool = False
    is_silent: bool = False
    raw: bytes | None = None


def models(*names: str, maker: str = "vllm", **more: Any) -> Answer:
    """What `/v1/models` says."""
    return Answer(body={"object": "list", "data": [{"id": name, "owned_by": maker, **more} for name in names]})


def completion(*texts: str, finish: str = "stop", usage: dict[str, int] | None = None) -> Answer:
    """A streamed completion of a prompt."""
    events: list[Any] = [{"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in texts]
    events.append({"choices": [{"index": 0, "text": "", "finish_reason": finish}]})
    if usage is not None:
        events.append({"choices": [], "usage": usage})
    return Answer(events=[*events, "[DONE]"])


def chat(*texts: str, finish: str = "stop") -> Answer:
    """A streamed answer in a chat."""
    events: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]} for text in texts]
    return Answer(events=[*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, "[DONE]"])


@dataclass
class Script:
    """What a server does: the answers of each path in order, of which the last one stays."""

    answers: dict[str, list[Answer]]
    asked: list[Asked] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def release(self) -> None:
        """Let what is held go on."""
        self.released.set()

    def at(self, path: str) -> list[Asked]:
        """What was asked at a path."""
        return [each for each in self.asked if each.path == path]

    def next(self, asked: Asked) -> Answer:
        """The answer to a request."""
        answers = self.answers.get(asked.path, [Answer(404, {"error": {"message": "no such path"}})])
        answer = answers[0]
        if len(answers) > 1:
            del answers[0]
        return answer


@asynccontextmanager
async def serving(answers: dict[str, list[Answer]], certificate: ssl.SSLContext | None = None) -> AsyncIterator[Script]:
    """A server on a free port of this machine; with a certificate it speaks TLS."""
    script = Script(answers, scheme="http" if certificate is None else "https")
    server = await asyncio.start_server(_connection(script), "127.0.0.1", 0, ssl=certificate)
    script.port = server.sockets[0].getsockname()[1]
    try:
        yield script
    finally:
        server.close()
        server.close_clients() if hasattr(server, "close_clients") else None


def _connection(script: Script) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            script.asked.append(asked)
            watch = asyncio.create_task(_watch(reader, script))
            try:
                await _reply(writer, script.next(asked), script)
            finally:
                watch.cancel()
        except (ConnectionError, asyncio.IncompleteReadError):
            script.hung_up.set()
        finally:
            writer.close()

    return serve


async def _watch(reader: asyncio.StreamReader, script: Script) -> None:
    if not await reader.read(1):
        script.hung_up.set()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(raw) if raw else None)


async def _reply(writer: asyncio.StreamWriter, answer: Answer, script: Script) -> None:
    if answer.is_silent:
        script.holding.set()
        await script.released.wait()
        return
    head = [f"HTTP/1.1 {answer.status} Scripted", "Connection: close"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    if answer.events is None:
        raw = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        head += ["Content-Type: application/json", f"Content-Length: {len(raw)}"]
        writer.write("\r\n".join([*head, "", ""]).encode() + raw)
        await writer.drain()
        return
    head += ["Content-Type: text/event-stream", "Transfer-Encoding: chunked"]
    writer.write("\r\n".join([*head, "", ""]).encode())
    for number, event in enumerate(answer.events):
        if number == answer.hold_before:
            script.holding.set()
            await script.released.wait()
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        chunk = f"data: {data}\n\n".encode()
        writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        await writer.drain()
    if not answer.cut:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
