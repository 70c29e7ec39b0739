"""`lacuna engine serve --ray` as a process of its own, with tiny models and everything Ray starts for it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from engine.protocol import codec
from engine.protocol.framing import HEADER
from engine.protocol.http import FACTS, JOBS, PROTOCOL_HEADER
from engine.protocol.messages import PROTOCOL_VERSION, Facts, Fill, Ready, Reply, Rewrite

START_S = 300.0
LEAVE_S = 90.0


@dataclass
class Team:
    """A team's engine that serves, where it is and who may use it."""

    url: str
    tokens: Path
    token: str
    log: Path
    process: subprocess.Popen[bytes]

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        """A client with a user's token."""
        headers = {"Authorization": f"Bearer {token or self.token}", PROTOCOL_HEADER: str(PROTOCOL_VERSION)}
        limits = httpx.Limits(max_connections=64)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=START_S, limits=limits, trust_env=False)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "engine.cli.main", "engine", *arguments]


def add_user(user: str, tokens: Path) -> str:
    """The new token of a user."""
    made = subprocess.run(command("token", user, "--tokens", str(tokens)), check=True, capture_output=True, text=True)
    return made.stdout.strip()


@contextlib.contextmanager
def team(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Team]:
    """Serve until the end of the block; then everything that was started has left, or the test fails."""
    tokens, log = folder / "tokens", folder / "serve.log"
    token = add_user("ada", tokens)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = command("serve", "--ray", "--tokens", str(tokens), "--port", str(port), *arguments)
    with log.open("wb") as output:
        process = subprocess.Popen(
            started, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, **(env or {})}
        )
    scheme = "https" if "--tls-key" in arguments else "http"
    serving = Team(f"{scheme}://127.0.0.1:{port}", tokens, token, log, process)
    try:
        wait_for_word(serving, "Serving ")
        yield serving
    finally:
        _end(process, log)


def wait_for_word(serving: Team, word: str) -> None:
    """Wait until the command has said it."""
    end = time.monotonic() + START_S
    while word not in serving.log.read_text(errors="replace"):
        assert serving.process.poll() is None, serving.log.read_text(errors="replace")
        assert time.monotonic() < end, serving.log.read_text(errors="replace")
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes], log: Path) -> None:
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.send_signal(signal.SIGINT)
    try:
        status = process.wait(LEAVE_S)
    finally:
        _, alive = psutil.wait_procs(children, 20)
        for child in (*alive, *([process] if process.poll() is None else [])):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    assert not alive, alive
    assert status == 0, log.read_text(errors="replace")


def frames_of(body: bytes) -> list[Reply]:
    """The replies in a whole response."""
    found: list[Reply] = []
    while body:
        (length,) = HEADER.unpack(body[: HEADER.size])
        end = HEADER.size + length
        if length:
            found.append(codec.decode_reply(body[HEADER.size : end]))
        body = body[end:]
    return found


async def facts_of(http: httpx.AsyncClient) -> Facts:
    """Of whichever replica answers."""
    (ready,) = frames_of((await http.get(FACTS)).content)
    assert isinstance(ready, Ready), ready
    return ready.facts


async def ask(http: httpx.AsyncClient, request: Fill | Rewrite, model: str = "") -> list[Reply]:
    """All replies to a job."""
    headers = {"Lacuna-Model": model} if model else {}
    response = await http.post(JOBS, content=codec.encode(request)[HEADER.size :], headers=headers)
    return frames_of(response.content)
