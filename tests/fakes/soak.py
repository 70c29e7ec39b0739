"""A long run of a random editor against a real server process, and what is measured on the way.

At a checkpoint every question is answered, every text is compared with the server's, everything is closed, and what
the server still holds is counted: memory is flat when the last stretch of the run added next to nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from tests.fakes.lsp_client import LspClient, initialize, start_process
from tests.fakes.random_editor import RandomEditor
from tests.fakes.soak_settings import QUICK
from tests.fakes.soak_texts import FOLDERS

SERVER = "tests.fakes.soak_server"
# What may stay behind each operation, in allocated blocks of Python's memory: a leak of one object is one at the least.
MOST_BLOCKS = 0.4
# Pages that the allocator does not give back come and go; a leak of 10 kB per operation would be seen.
MOST_RSS = 8_000_000


@dataclass(frozen=True)
class Checkpoint:
    """What the server holds with no document open: blocks and objects of Python's memory, and the process in bytes."""

    operations: int
    blocks: int
    objects: int
    rss: int


class Soak:
    """One run. `faults` are what went wrong, checkpoints what was measured."""

    def __init__(self, client: LspClient, pid: int, editor: RandomEditor) -> None:
        self.client = client
        self.editor = editor
        self.process = psutil.Process(pid)
        self.checkpoints: list[Checkpoint] = []

    @property
    def faults(self) -> list[str]:
        return self.editor.faults

    async def begin(self) -> None:
        """The handshake; the first question to the server is answered."""
        await initialize(self.client, self.editor.capabilities, QUICK, FOLDERS[:1])
        self.client.notify("initialized", {})
        await self.client.request("test/memory")

    async def checkpoint(self) -> Checkpoint:
        """Wait for every answer, compare every text, close everything, count what is left."""
        await self.editor.asker.settle()
        await self._compare()
        self.editor.desk.close_all()
        status = await self._status_at_rest()
        if status["documents"] or status["jobs"]:
            self.faults.append(f"with everything closed there are {status['documents']} documents, {status['jobs']} jobs")
        held = await self.client.request("test/memory")
        self.editor.hear()
        rss = self.process.memory_info().rss
        found = Checkpoint(self.editor.done.total(), held["blocks"], held["objects"], rss)
        self.checkpoints.append(found)
        return found

    async def _status_at_rest(self) -> Any:
        """The server's own count; a job whose answer is out needs a turn of the loop to be gone."""
        return await self.client.request("workspace/executeCommand", {"command": "lacuna.status"})

    async def _compare(self) -> None:
        """The server's texts are the editor's, to the letter."""
        documents = self.editor.desk.open
        told = await self.client.request("test/texts", {"uris": list(documents)})
        if told["count"] != len(documents):
            self.faults.append(f"{told['count']} documents are open at the server, {len(documents)} at the editor")
        for uri, text in told["texts"]:
            if text != documents[uri].model.text:
                self.faults.append(f"{uri} at version {documents[uri].version}: {text!r} is not {documents[uri].model.text!r}")

    def judge_memory(self) -> None:
        """Compare the last two checkpoints: what came before warmed up caches, grammars and patterns."""
        before, after = self.checkpoints[-2:]
        blocks = (after.blocks - before.blocks) / (after.operations - before.operations)
        if blocks > MOST_BLOCKS:
            self.faults.append(f"memory grows by {blocks:.2f} blocks with each operation: {self.checkpoints}")
        if after.rss - before.rss > MOST_RSS:
            self.faults.append(f"the process grew by {(after.rss - before.rss) / 1e6:.1f} MB: {self.checkpoints}")

    async def end(self) -> None:
        """Leave in order; whatever the client or the log complains of is a fault."""
        code = await self.client.leave()
        self.editor.hear()
        if code:
            self.faults.append(f"the server ended with {code}")
        self.faults.extend(f"progress of {token} never ended" for token in self.editor.unended)
        self.faults.extend(log_faults(self.client.log.decode(errors="replace")))
        try:
            self.client.check()
        except AssertionError as error:
            self.faults.append(str(error))


def log_faults(log: str) -> list[str]:
    """The lines of a server's log at level ERROR, and what Python says on its own of errors nobody caught."""
    marks = (" ERROR ", " CRITICAL ", "Traceback", "Exception ignored", "never retrieved", "never awaited")
    return [line for line in log.splitlines() if any(mark in line for mark in marks)]


async def connected(seed: int, patience_s: float, **script: Any) -> Soak:
    """A run that has not begun, of a server process of its own; `script` goes to `tests.fakes.soak_server`."""
    link = await start_process({"seed": seed} | script, SERVER)
    client = LspClient(link)
    editor = RandomEditor(client, seed, patience_s, scripted="model" not in script)
    return Soak(client, link.process.pid, editor)


async def soak(
    seed: int, operations: int, *, checkpoints: int = 4, report: Callable[[Soak], None] = lambda _soak: None, **script: Any
) -> list[str]:
    """The faults of a run of `operations` against the server with a scripted engine."""
    run = await connected(seed, 20.0, **script)
    try:
        await run.begin()
        for number in range(checkpoints):
            stretch = operations * (number + 1) // checkpoints - operations * number // checkpoints
            await run.editor.operate(stretch)
            await run.checkpoint()
        run.judge_memory()
        await run.end()
        report(run)
        return run.faults
    finally:
        run.client.link.kill()
        await run.client.wait()
