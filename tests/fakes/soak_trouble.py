"""Faults on purpose, done to a running engine and its surroundings in a long run: which there are, and doing one.

Every choice follows from the `random.Random` that is given; when a fault strikes depends on the machine. After each the
run goes on as if nothing had been done: nobody is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.probe import probe
from engine.protocol import codec
from engine.protocol.address import Address
from engine.protocol.framing import HEADER, MAX_FRAME_BYTES, frame
from engine.protocol.messages import PROTOCOL_VERSION, Fill, Hello
from tests.fakes.soak import Soak

# Bytes that may stand where a frame should: another's protocol, a frame too large, one that is no message, half of one.
GARBAGE = (
    b"GET / HTTP/1.1\r\n\r\n",
    HEADER.pack(MAX_FRAME_BYTES + 1),
    frame(b"\xc1"),
    frame(b"garbage"),
    HEADER.pack(1000) + b"half",
    b"\0",
)
DISK_FULL_S = 3.0
NAP_S = 1.5


@dataclass
class Target:
    """What is to be troubled: the engine at `address`, its `cache` (None: it has none), and the editors' runs."""

    address: Address
    cache: Path | None
    runs: list[Soak]

    def engine(self) -> int | None:
        """The process that serves now. It may be suspended."""
        found = probe(self.address, limit_s=0.2)
        return found.pid


class Trouble:
    """Does faults to a target; `done` counts them by name."""

    def __init__(self, target: Target, chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._target = target
        self._chance = chance
        self._kinds: dict[str, tuple[int, Callable[[], Awaitable[bool]]]] = {
            "kill": (5, self._kill),
            "terminate": (2, self._terminate),
            "suspend": (2, self._suspend),
            "nap": (2, self._nap),
            "socket removed": (2, self._remove_socket),
            "frames from a stranger": (4, self._bother_engine),
            "frames to a server": (4, self._bother_server),
            "disk full": (2, self._fill_disk),
            "cache cut": (1 if target.cache else 0, self._cut_cache),
        }

    async def strike(self) -> None:
        """One fault, any."""
        names = list(self._kinds)
        (name,) = self._chance.choices(names, [weight for weight, _ in self._kinds.values()])
        if await self._kinds[name][1]():
            self.done[name] += 1

    async def _signal(self, number: int) -> int | None:
        pid = await asyncio.to_thread(self._target.engine)
        if pid is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return pid
        return None

    async def _kill(self) -> bool:
        return await self._signal(signal.SIGKILL) is not None

    async def _terminate(self) -> bool:
        return await self._signal(signal.SIGTERM) is not None

    async def _suspend(self) -> bool:
        """For good: nobody wakes it."""
        return await self._signal(signal.SIGSTOP) is not None

    async def _nap(self) -> bool:
        pid = await self._signal(signal.SIGSTOP)
        if pid is None:
            return False
        await asyncio.sleep(NAP_S)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        return True

    async def _remove_socket(self) -> bool:
        existed = self._target.address.path.exists()
        self._target.address.path.unlink(missing_ok=True)
        return existed

    async def _bother_engine(self) -> bool:
        """Somebody who knows the way in, greets or does not, and sends what is no message."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._target.address.path)
        except OSError:
            return False
        if self._chance.random() < 0.7:
            writer.write(codec.encode(Hello(PROTOCOL_VERSION, "stranger")))
            whole = codec.encode(Fill("x", "python", "a" * 100, "b"))
            writer.write(whole[: self._chance.randrange(len(whole))] if self._chance.random() < 0.5 else whole)
        writer.write(self._chance.choice(GARBAGE))
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                await reader.read(1000)
        writer.close()
        return True

    async def _bother_server(self) -> bool:
        """Bytes that the engine did not send, between those it did."""
        run = self._chance.choice(self._target.runs)
        run.client.notify("test/garble", {"hex": self._chance.choice(GARBAGE).hex()})
        return True

    async def _fill_disk(self) -> bool:
        """For a while no process that serves can write to any file, as with a quota that is used up."""
        pid = await asyncio.to_thread(self._target.engine)
        processes = [run.process.pid for run in self._target.runs] + ([pid] if pid is not None else [])
        for limit in ((0, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)):
            for process in processes:
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    psutil.Process(process).rlimit(psutil.RLIMIT_FSIZE, limit)
            if limit[0] == 0:
                await asyncio.sleep(DISK_FULL_S)
        return True

    def _cached(self) -> Path | None:
        cache = self._target.cache
        files = sorted(path for path in cache.rglob("*") if path.is_file()) if cache is not None else []
        return self._chance.choice(files) if files else None

    async def _cut_cache(self) -> bool:
        """A file of the cache loses its end, under whoever has it mapped."""
        if (path := self._cached()) is None:
            return False
        os.truncate(path, self._chance.randrange(path.stat().st_size + 1))
        return True
