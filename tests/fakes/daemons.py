"""Real engine processes around a scripted core, each found and started by the real client in a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from engine.protocol.address import Address, Transport, engine_address
from engine.protocol.messages import Fill
from lsp_server.engine_client import EngineProcess, Patience
from lsp_server.engine_connection import Silence, connect
from tests.fakes.raw_client import PATIENCE_S, short_home

SCRIPTED = "tests.fakes.scripted_core"
DAEMON = [sys.executable, "-m", SCRIPTED, "--model", "scripted"]
ENDLESS = "steps=0 delay=0.005"
# Short enough for a test, and long enough for a machine that does other things, too.
HASTY = Silence(asked_after_s=0.5, lost_after_s=2.0, look_every_s=0.1)


@contextmanager
def daemon_home() -> Iterator[Path]:
    """A LACUNA_HOME; engines that a failed test left running there are ended."""
    with short_home() as folder, ended_engines(folder):
        yield folder


@contextmanager
def ended_engines(home: Path, module: str = SCRIPTED) -> Iterator[None]:
    """Around what starts engines in `home`: those that still run there are ended."""
    try:
        yield
    finally:
        for process in engines_in(home, module):
            process.kill()


def engines_in(home: Path, module: str = SCRIPTED) -> list[psutil.Process]:
    """The engines of a module for tests that run in `home`."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if module in process.cmdline() and process.environ().get("LACUNA_HOME") == str(home):
                found.append(process)
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def env_of(home: Path, load: str = "") -> dict[str, str]:
    return {**os.environ, "LACUNA_HOME": str(home), "SCRIPTED_TRACE": str(home / "trace"), "SCRIPTED_LOAD": load}


def address_in(home: Path, transport: Transport = "auto") -> Address:
    return engine_address("scripted", {"LACUNA_HOME": str(home)}, transport)


@asynccontextmanager
async def client_of(
    home: Path,
    load: str = "",
    transport: Transport = "auto",
    options: tuple[str, ...] = (),
    patience: Patience | None = None,
) -> AsyncIterator[EngineProcess]:
    command = [*DAEMON, "--transport", transport, *options]
    patience = patience or Patience(0.05)
    process = EngineProcess("scripted", command=command, env=env_of(home, load), transport=transport, patience=patience)
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            yield process
    finally:
        await process.close()


async def stop(home: Path, transport: Transport = "auto") -> None:
    connection = await connect(address_in(home, transport), "test")
    report = await connection.status()
    await connection.shutdown()
    await connection.close()
    assert report.facts is not None
    await asyncio.to_thread(gone, report.facts.pid)


def gone(pid: int) -> None:
    """Wait until a process has ended; its parent may not have asked for its status yet."""
    end = time.monotonic() + PATIENCE_S
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, f"process {pid} does not end"
            time.sleep(0.01)


def fill(job_id: str, script: str = "steps=3 text=abcdef") -> Fill:
    return Fill(job_id, "python", script, "", wants_drafts=True)
