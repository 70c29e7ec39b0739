"""What a person sees of an engine's troubles: the server answers every time, and says a thing once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.daemons import DAEMON, daemon_home, engines_in, gone
from tests.fakes.lsp_client import PATIENCE_S, VSCODE, LspClient, initialize, start_process

pytestmark = pytest.mark.asyncio
SERVER = "tests.fakes.soak_server"
SCRIPT = {"model": "scripted", "command": DAEMON, "silence": (0.5, 2.0, 0.1), "longest_retry_s": 0.2}


@pytest.fixture
def home() -> Iterator[Path]:
    with daemon_home() as folder:
        yield folder


@asynccontextmanager
async def editor(home: Path, monkeypatch: pytest.MonkeyPatch, load: str = "") -> AsyncIterator[LspClient]:
    """An editor with a document open, and a real server that starts real engines."""
    monkeypatch.setenv("LACUNA_HOME", str(home))
    monkeypatch.setenv("SCRIPTED_LOAD", load)
    client = LspClient(await start_process(SCRIPT, SERVER))
    try:
        await initialize(client, VSCODE)
        client.notify("initialized", {})
        client.open("x = ")
        yield client
        assert await client.leave() == 0
    finally:
        client.link.kill()
        await client.wait()


async def state_of(client: LspClient) -> str:
    report: dict[str, Any] = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
    return str(report["state"])


async def until(client: LspClient, state: str) -> None:
    """Go on typing until the server says so: an engine that left in order comes back for who asks."""
    async with asyncio.timeout(PATIENCE_S):
        while await state_of(client) != state:
            await client.inline(0, 4)
            await asyncio.sleep(0.02)


async def serving(client: LspClient, home: Path) -> psutil.Process:
    """The engine that the server is connected to and that answers: not the last one, whose end it may not know yet."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await client.inline(0, 4)
            found = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
            alive = {process.pid: process for process in engines_in(home)}
            if found["report"] and found["facts"]["pid"] in alive:
                return alive[found["facts"]["pid"]]
            await asyncio.sleep(0.02)


def shown(client: LspClient) -> list[str]:
    return [params["message"] for params in client.claim_all("window/showMessage")]


async def test_an_engine_that_is_killed_again_and_again_is_nobody_s_trouble(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with editor(home, monkeypatch) as client:
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL):
            engine = await serving(client, home)
            assert await client.inline(0, 4) is not None
            os.kill(engine.pid, number)
            # Answered, whatever there is: nothing, or the next engine's text.
            await client.inline(0, 4)
            await asyncio.to_thread(gone, engine.pid)
        await until(client, "ready")
        assert shown(client) == []
        client.claim_all("window/logMessage")


async def test_an_engine_that_cannot_be_loaded_is_said_once_whatever_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with editor(home, monkeypatch, "kill=9") as client:
        await until(client, "failed")
        for _ in range(5):
            assert not await client.inline(0, 4)
        log = home / "state" / "engine-scripted.log"
        async with asyncio.timeout(PATIENCE_S):
            while log.read_text(encoding="utf-8").count("serving scripted") < 3:
                assert not await client.inline(0, 4)
                await asyncio.sleep(0.05)
        (message,) = shown(client)
        assert "when memory runs out" in message
        assert "smaller model" in message
        client.claim_all("window/logMessage")
