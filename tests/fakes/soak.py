"""A long run of a random editor against a real server process, and what is measured on the way.

At a checkpoint every question is answered, every text is compared with the server's, everything is closed, and what
the server still holds is counted: memory is flat when the last stretch of the run added next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psutil

from tests.fakes.lsp_client import PATIENCE_S, LspClient, initialize, start_process
from tests.fakes.random_editor import RandomEditor
from tests.fakes.soak_texts import FOLDERS

SERVER = "tests.fakes.soak_server"
CHECKPOINTS = 4
LAST_RUSH = 10
# What may be added for each operation with everything closed. Bounded caches fill for a long time, up to half an object
# for each operation; whatever is kept of each is one at the least, and more blocks than that.
MOST_OBJECTS, MOST_BLOCKS = 0.8, 3.0
# In fewer operations the filling of caches would pass for a leak.
FEWEST_OPERATIONS = 500
# How many more there may be of all kinds of objects that hang on requests and documents: recent results are kept.
MOST_OWN = 25
# Pages that the allocator does not give back come and go; a leak of 6 kB with each operation would be seen.
MOST_RSS = 6_000_000


@dataclass(frozen=True)
class Checkpoint:
    """What the server holds with no document open: blocks and objects of Python's memory, and the process in bytes.

    `own` counts the objects of each type that may hang on a request or a document.
    """

    operations: int
    blocks: int
    objects: int
    rss: int
    own: dict[str, int] = field(repr=False)


def growth(before: Checkpoint, after: Checkpoint) -> list[str]:
    """What grew from one checkpoint to the other with the operations between them."""
    count = after.operations - before.operations
    objects, blocks = (after.objects - before.objects) / count, (after.blocks - before.blocks) / count
    own = {kind: more for kind in after.own if (more := after.own[kind] - before.own.get(kind, 0)) > 0}
    faults = []
    if count >= FEWEST_OPERATIONS and (objects > MOST_OBJECTS or blocks > MOST_BLOCKS):
        faults.append(f"each operation adds {objects:.2f} objects and {blocks:.2f} blocks of memory")
    if sum(own.values()) > MOST_OWN:
        faults.append(f"objects stay behind: {own}")
    if after.rss - before.rss > MOST_RSS:
        faults.append(f"the process grew by {(after.rss - before.rss) / 1e6:.1f} MB")
    return [f"{fault} ({before} to {after})" for fault in faults]


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
        await initialize(self.client, self.editor.capabilities, self.editor.choices.base, FOLDERS[:1])
        self.client.notify("initialized", {})
        await self.client.request("test/memory")

    async def checkpoint(self) -> Checkpoint:
        """Wait for every answer, compare every text, close everything, count what is left."""
        await self.editor.asker.settle()
        await self._compare()
        self.editor.desk.close_all()
        status = await self.client.request("workspace/executeCommand", {"command": "lacuna.status"})
        if status["documents"] or status["jobs"]:
            self.faults.append(
                f"with everything closed there are {status['documents']} documents, {status['jobs']} jobs"
            )
        held = await self.client.request("test/memory")
        self.editor.hear()
        rss = self.process.memory_info().rss
        found = Checkpoint(self.editor.done.total(), held["blocks"], held["objects"], rss, held["own"])
        self.checkpoints.append(found)
        return found

    async def _compare(self) -> None:
        """The server's texts are the editor's, to the letter."""
        documents = self.editor.desk.open
        told = await self.client.request("test/texts", {"uris": list(documents)})
        if told["count"] != len(documents):
            self.faults.append(f"{told['count']} documents are open at the server, {len(documents)} at the editor")
        for uri, text in told["texts"]:
            if text != documents[uri].model.text:
                self.faults.append(
                    f"{uri} at version {documents[uri].version}: {text!r} is not {documents[uri].model.text!r}"
                )

    def judge_memory(self) -> None:
        """Compare the middle of the run with its end: what came before warmed up caches, grammars and patterns."""
        self.faults.extend(growth(self.checkpoints[len(self.checkpoints) // 2 - 1], self.checkpoints[-1]))

    async def end(self) -> None:
        """Leave with questions on their way; whatever the client or the log complains of is a fault."""
        self.editor.rush(LAST_RUSH)
        code = await self.client.leave()
        await self.editor.asker.settle()
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
    seed: int, operations: int, *, report: Callable[[Soak], None] = lambda _soak: None, **script: Any
) -> list[str]:
    """The faults of a run of `operations` against the server with a scripted engine."""
    run = await connected(seed, PATIENCE_S, **script)
    try:
        await run.begin()
        for _ in range(CHECKPOINTS):
            await run.editor.operate(operations // CHECKPOINTS)
            await run.checkpoint()
        run.judge_memory()
        await run.end()
        report(run)
        return run.faults
    finally:
        run.client.link.kill()
        await run.client.wait()
        # pytest shows this with a failure: the server's side of the story.
        sys.stderr.write(run.client.log.decode(errors="replace"))
