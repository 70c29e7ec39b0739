"""The steps of a protocol case that are about processes: the engine's, the server's, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import psutil

from tests.fakes import lsp_client as lsp
from tests.fakes import protocol_steps as steps
from tests.fakes.lsp_link import ProcessLink
from tests.fakes.protocol_stage import Stage
from tests.fakes.raw_client import PATIENCE_S

STATUS = {"command": "lacuna.status"}
# What a process that waits may use: the system counts in ticks of 10 ms, and one may fall to it by chance.
IDLE_SHARE, IDLE_TICKS_S = 0.01, 0.03
# How often in a second it may wake: it asks every two whether its editor still lives.
WAKES_PER_S = 10
# Two seconds is the goal on a free machine.
LEAVING_S = 10.0


class Playing(Protocol):
    """What of a player these steps need."""

    stage: Stage
    client: lsp.LspClient
    ended: bool
    mark: int


async def ready(player: Playing, step: steps.Ready) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await player.client.request("workspace/executeCommand", STATUS))["state"] != "ready":
            await asyncio.sleep(0.01)
    # On its way the engine tells of itself in the log.
    player.client.claim_all("window/logMessage")


async def idle(player: Playing, step: steps.Idle) -> None:
    link = player.client.link
    assert isinstance(link, ProcessLink)
    await player.client.request("workspace/executeCommand", STATUS)
    processes = [psutil.Process(link.process.pid), *player.stage.engines()]
    before = [_used(process) for process in processes]
    await asyncio.sleep(step.seconds)
    for process, (used_before, woken_before) in zip(processes, before, strict=True):
        used, woken = _used(process)
        assert used - used_before <= max(IDLE_TICKS_S, IDLE_SHARE * step.seconds), process
        assert woken - woken_before <= WAKES_PER_S * step.seconds, process


def _used(process: psutil.Process) -> tuple[float, int]:
    """Seconds of CPU that a process has used, and how often its main thread went to sleep."""
    times = process.cpu_times()
    return times.user + times.system, process.num_ctx_switches().voluntary


async def end(player: Playing, step: steps.End) -> None:
    client = player.client
    player.ended = True
    if step.how == "killed":
        assert isinstance(client.link, ProcessLink)
        client.link.process.kill()
    elif step.how == "input":
        client.link.end_input()
    else:
        client.notify("exit")
    # Without a person at the other end nothing may keep a server: it gives its jobs a moment and goes.
    async with asyncio.timeout(LEAVING_S):
        code = await client.wait()
    assert step.code is None or code == step.code, code


async def same_engine(player: Playing, step: steps.SameEngine) -> None:
    # Every server starts an engine as soon as it may: all but one of them find that one serves already, and leave.
    async with asyncio.timeout(PATIENCE_S):
        while len(engines := player.stage.engines()) > 1:
            await asyncio.sleep(0.05)
    (process,) = engines
    statuses = [await client.request("workspace/executeCommand", STATUS) for client in player.stage.clients]
    assert {status["facts"]["pid"] for status in statuses} == {process.pid}
    assert {status["report"]["clients"] for status in statuses} == {len(statuses)}


async def engine_gone(player: Playing, step: steps.EngineGone) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while player.stage.engines():
            await asyncio.sleep(0.05)


async def core(player: Playing, step: steps.Core) -> None:
    core = player.stage.core
    assert core is not None
    async with asyncio.timeout(PATIENCE_S):
        while not core.order:
            await asyncio.sleep(0.01)
    first = core.order[0]
    if step.mark:
        player.mark = core.computed[first]
    assert step.abandoned is None or len(core.abandoned) == step.abandoned, core.abandoned
    assert step.more is None or core.computed[first] <= player.mark + step.more, core.computed


PROCESS_STEPS: dict[type[Any], Callable[[Any, Any], Awaitable[None]]] = {
    steps.Ready: ready,
    steps.Idle: idle,
    steps.End: end,
    steps.SameEngine: same_engine,
    steps.EngineGone: engine_gone,
    steps.Core: core,
}
