"""How an editor's waiting grows with the file, with open documents and with other editors: real server, real engine.

Latencies are of one typed character and the automatic inline completion behind it, the server's own wait for a pause in
typing included.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

import psutil

from engine.protocol.messages import Fill
from lsp_server.engine_client import EngineProcess
from tests.bench.growth.point import Point, point_of, sizes
from tests.fakes.lsp_client import VSCODE, LspClient, area, change, initialize, start_process

FILE_LINES = (1_000, 10_000, 100_000, 1_000_000)
OPEN_DOCUMENTS = (1, 10, 100, 1_000)
CLIENTS = (1, 2, 4, 8)
# What is typed, a key at a time; the first one is not counted. Something that can be gone on with.
TYPED = "answer = "
PATIENCE_S = 120.0
IDLE_GOAL_S = 0.5
REST_S, RESTING_SHARE, REST_PATIENCE_S = 2.0, 0.05, 300.0
SERVER = "tests.fakes.soak_server"


@asynccontextmanager
async def server(model: str) -> AsyncIterator[tuple[LspClient, psutil.Process]]:
    """A server process that has found its engine, with one small document open."""
    link = await start_process({"seed": 1, "model": model}, SERVER)
    client = LspClient(link)
    try:
        await initialize(client, VSCODE)
        client.notify("initialized", {})
        client.open("total = 1\n", uri="file:///w/first.py")
        async with asyncio.timeout(PATIENCE_S):
            while (await client.request("workspace/executeCommand", {"command": "lacuna.status"}))["state"] != "ready":
                await asyncio.sleep(0.2)
        yield client, psutil.Process(link.process.pid)
        await client.leave()
    finally:
        link.kill()
        await client.wait()


def text_of(lines: int) -> str:
    """Python of so many lines: short functions, each different, a whole number of them and a rest."""
    found: list[str] = []
    number = 0
    while len(found) < lines:
        number += 1
        found += [f"def step_{number}(value, factor):", f"    total_{number} = value * factor + {number}"]
        found += [f"    return total_{number}", ""]
    return "\n".join(found[:lines]) + "\n"


async def key_seconds(client: LspClient, uri: str, line: int, typed: int) -> tuple[float, bool]:
    """The next character typed behind `typed` others on `line`, and the answer to the question at the new cursor;
    whether it holds a text."""
    spot = (line, typed)
    began = perf_counter()
    client.send(change(typed + 1, TYPED[typed], area(spot, spot), uri))
    message = client.ghost(line, typed + 1, uri, triggerKind=2)
    client.send(message)
    found = await client.answer(message, PATIENCE_S)
    return perf_counter() - began, bool(found["items"] if isinstance(found, dict) else found)


async def typed(client: LspClient, uri: str, lines: int) -> tuple[list[float], float]:
    """Latencies of some keys on a blank line in the middle of a document of `lines` lines, a first one left out; and
    the share of them whose answer holds a text."""
    line = lines // 8 * 4 + 3
    keys = [await key_seconds(client, uri, line, count) for count in range(len(TYPED))][1:]
    return [seconds for seconds, _ in keys], sum(answered for _, answered in keys) / len(keys)


async def file_curve(model: str, lengths: Sequence[int]) -> AsyncIterator[Point]:
    """Keys in files of more and more lines; what opening cost, and what the server then holds."""
    for lines in lengths:
        async with server(model) as (client, process):
            uri = "file:///w/large.py"
            began = perf_counter()
            client.open(text_of(lines), uri=uri, version=0)
            await client.request("workspace/executeCommand", {"command": "lacuna.status"})
            opened = perf_counter() - began
            before = _cpu_seconds(process)
            times, answered = await typed(client, uri, lines)
            spent = (_cpu_seconds(process) - before) / len(TYPED)
            rss = process.memory_info().rss / 1e6
            more = {"open_ms": opened * 1000, "rss_mb": rss, "answered": answered}
            yield point_of("a key, by lines of the file", lines, times, **more)
            yield point_of("the server's processor time for a key, by lines", lines, [spent])


async def documents_curve(model: str, counts: Sequence[int]) -> AsyncIterator[Point]:
    """Keys in one document of 1,000 lines while more and more of 200 lines are open."""
    async with server(model) as (client, process):
        uri = "file:///w/edited.py"
        client.open(text_of(1_000), uri=uri, version=0)
        version = 0
        for count in counts:
            while version < count - 1:
                version += 1
                client.open(text_of(200), uri=f"file:///w/other_{version}.py")
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            client.open(text_of(1_000), uri=uri, version=0)
            times, answered = await typed(client, uri, 1_000)
            rss = process.memory_info().rss / 1e6
            yield point_of("a key, by open documents", count, times, rss_mb=rss, answered=answered)


async def clients_curve(model: str, counts: Sequence[int]) -> AsyncIterator[Point]:
    """Fills that 1, 2, 4, 8 clients ask of one engine at the same moment: until each has its answer."""
    for count in counts:
        clients = [EngineProcess(model, client=f"bench-{number}") for number in range(count)]
        try:
            await asyncio.gather(*(client.ready() for client in clients))
            times: list[float] = []
            began = perf_counter()
            for turn in range(3):
                # The process's own number: an engine that lives since an earlier run must not know the prompts.
                name = f"{turn}-{count}-{os.getpid()}"
                asked = (_fill_seconds(client, f"{name}-{n}") for n, client in enumerate(clients))
                times += await asyncio.gather(*asked)
            total = perf_counter() - began
            yield point_of("a fill, by clients at once", count, times, fills_per_s=3 * count / total)
        finally:
            await asyncio.gather(*(client.close() for client in clients))


async def _fill_seconds(client: EngineProcess, name: str) -> float:
    request = Fill(name, "python", f"# {name}\n{text_of(40)}def last_{name[0]}(", "\n", max_tokens=16)
    began = perf_counter()
    await client.submit(request, wait=True)
    return perf_counter() - began


async def idle_curve(model: str, seconds: float) -> AsyncIterator[Point]:
    """Processor time that server and engine use in `seconds` of nothing, with a document open and an answer given."""
    async with server(model) as (client, process):
        uri = "file:///w/rest.py"
        client.open(text_of(1_000), uri=uri, version=0)
        await typed(client, uri, 1_000)
        engine = EngineProcess(model, client="bench")
        try:
            watched = {"server": process, "engine": psutil.Process((await engine.ready()).pid)}
        finally:
            await engine.close()
        rested = await _seconds_until_rest(list(watched.values()))
        before = {name: _cpu_seconds(each) for name, each in watched.items()}
        await asyncio.sleep(seconds)
        for name, each in watched.items():
            spent = _cpu_seconds(each) - before[name]
            at_rest = f"{name}: processor time at rest, by seconds"
            yield point_of(at_rest, round(seconds), [spent], goal_s=IDLE_GOAL_S, busy_before_s=rested)


async def _seconds_until_rest(watched: Sequence[psutil.Process]) -> float:
    """How long the work goes on that follows an answer (the next prompt is encoded, costs are measured again)."""
    began = perf_counter()
    while perf_counter() - began < REST_PATIENCE_S:
        before = sum(map(_cpu_seconds, watched))
        await asyncio.sleep(REST_S)
        if sum(map(_cpu_seconds, watched)) - before < REST_S * RESTING_SHARE:
            return perf_counter() - began - REST_S
    return perf_counter() - began


def curves(model: str, names: frozenset[str], idle_s: float, *, quick: bool = False) -> Iterator[Point]:
    """The curves named, measured one after another."""
    made = {
        "files": file_curve(model, sizes(FILE_LINES, quick=quick)),
        "documents": documents_curve(model, sizes(OPEN_DOCUMENTS, quick=quick)),
        "clients": clients_curve(model, sizes(CLIENTS, quick=quick)),
        "idle": idle_curve(model, idle_s),
    }
    for name, points in made.items():
        if name in names:
            yield from _as_measured(points)


def _as_measured(points: AsyncIterator[Point]) -> Iterator[Point]:
    """Each point as soon as there is one."""

    async def following() -> Point | None:
        return await anext(points, None)

    with asyncio.Runner() as runner:
        while (point := runner.run(following())) is not None:
            yield point


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
