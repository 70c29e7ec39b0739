"""How long the engine takes from its process's start to ready and to a first answer, and what it holds: for `start`.

Each round starts `python -m engine run` in a home of its own that shares the fetched and converted models, so that no
running engine is met, then asks for fills in files of the standard library, one context each.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.models.folder_record import converted_folder
from engine.paths import Paths
from engine.protocol.address import engine_address
from engine.protocol.messages import Fill
from engine.store import Store
from lsp_server.engine_connection import EngineConnection, EngineGone, connect

READY_MS, PEAK_MB = 3000.0, 1300.0
# Sources to fill a line in: long enough to fill a prompt's window.
SOURCES = ("argparse", "ast", "dataclasses", "heapq", "json/decoder", "shutil")
_POLL_S = 0.005
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class EngineRound:
    """One start. Times in ms from the process's start; memory in MB of 1,000,000 bytes, resident.

    `peak_mb` is the most it ever held, after a fill in each of `SOURCES`; 0 where the system does not tell.
    """

    ready_ms: float
    answered_ms: float
    ready_mb: float
    peak_mb: float


def engine_round(model: str, *, cold: bool) -> EngineRound:
    """One start of the engine for `model`, which is converted; `cold` has its files read from the disk."""
    real = Paths.from_environment(os.environ)
    if cold:
        _evict(converted_folder(Store.of_user(os.environ).converted_dir(model), model))
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "models").symlink_to(real.models, target_is_directory=True)
        (home / "cache").symlink_to(real.cache, target_is_directory=True)
        return asyncio.run(_round(model, os.environ | {"LACUNA_HOME": place}))


async def _round(model: str, environment: Mapping[str, str]) -> EngineRound:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", "run", "--model", model], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        connection = await _connected(process, model, environment)
        await asyncio.wait_for(connection.ready(), _PATIENCE_S)
        ready = time.perf_counter()
        memory = psutil.Process(process.pid).memory_info().rss / 1e6
        await connection.submit(_request(0), None)
        answered = time.perf_counter()
        for number in range(1, len(SOURCES)):
            await connection.submit(_request(number), None)
        peak = _peak_mb(process.pid)
        await connection.close()
    finally:
        process.terminate()
        process.wait()
    return EngineRound((ready - began) * 1e3, (answered - began) * 1e3, memory, peak)


async def _connected(process: subprocess.Popen[bytes], model: str, environment: Mapping[str, str]) -> EngineConnection:
    address = engine_address(model, environment)
    while process.poll() is None:
        try:
            return await connect(address, "bench")
        except EngineGone:
            await asyncio.sleep(_POLL_S)
    raise SystemExit("the engine ended while it was starting")


def _request(number: int) -> Fill:
    """A line in the middle of a source."""
    text = (Path(json.__file__).parent.parent / f"{SOURCES[number]}.py").read_text(encoding="utf-8")
    line = text.index("\n", len(text) // 2) + 1
    return Fill(f"start-{number}", "python", text[:line], text[text.index("\n", line) :], max_tokens=16, max_lines=1)


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return float(getattr(psutil.Process(pid).memory_info(), "peak_wset", 0)) / 1e6


def _evict(folder: Path) -> None:
    """Drop the files' pages from the system's cache, so that the next reader waits for the disk."""
    for path in folder.rglob("*.*"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
