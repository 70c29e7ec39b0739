"""What a team's engine costs and loses: `python -m tests.bench.team [--clients 32] [--rounds 3] [--kills 1] [--json]`.

The same requests by the same number of clients, three times: at one engine on its socket, at two replicas behind Ray
Serve, and there once more while replicas are killed. Every text is compared with that of the core alone. The model is
tiny and random, so the times tell what the way costs, not what a model does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.config import EngineConfig
from engine.protocol.messages import Done, Fill, Rewrite
from engine.startup import load_core
from lsp_server.engine_client import EngineProcess
from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.driving import drive
from tests.fakes.team_process import Team, ask, facts_of, team

Asker = Callable[[Fill | Rewrite], Awaitable[str | None]]


@dataclass(frozen=True)
class Phase:
    """What one of the three runs gave. Times of a request, in seconds."""

    name: str
    requests: int
    kills: int
    lost: int
    wrong: int
    wall_s: float
    median_s: float
    p95_s: float
    worst_s: float


def request_of(client: int, turn: int) -> Fill | Rewrite:
    name = f"{client}.{turn}"
    if client % 2:
        return Rewrite(name, "python", "", f"x = {client}\n", "", "Add one.", max_tokens=64)
    return Fill(name, "python", f"def add{client}(a, b):\n    return ", "\n\nprint(1)\n", max_tokens=48)


async def load(name: str, clients: int, rounds: int, asker: Asker, texts: dict[int, str], kills: int = 0) -> Phase:
    """Every client asks so many times in a row, all of them at once."""
    times: list[float] = []
    lost = wrong = 0

    async def client(number: int) -> None:
        nonlocal lost, wrong
        for turn in range(rounds):
            began = time.perf_counter()
            text = await asker(request_of(number, turn))
            times.append(time.perf_counter() - began)
            lost += text is None
            wrong += text is not None and text != texts[number]

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    wall = time.perf_counter() - began
    times.sort()
    ranks = [times[min(len(times) - 1, int(len(times) * share))] for share in (0.5, 0.95, 1.0)]
    return Phase(name, len(times), kills, lost, wrong, *(round(value, 3) for value in (wall, *ranks)))


async def at_one_engine(model: Path, clients: int, rounds: int, texts: dict[int, str]) -> Phase:
    engine = EngineProcess(str(model))

    async def asker(request: Fill | Rewrite) -> str | None:
        return (await engine.submit(request, wait=True)).text

    try:
        await engine.ready()
        return await load("one engine, its socket", clients, rounds, asker, texts)
    finally:
        pid = engine.facts.pid if engine.facts else 0
        await engine.close()
        if pid:
            os.kill(pid, signal.SIGTERM)


async def at_a_team(served: Team, clients: int, rounds: int, texts: dict[int, str], kills: int) -> AsyncIterator[Phase]:
    async with served.client() as http:

        async def asker(request: Fill | Rewrite) -> str | None:
            last = (await ask(http, request))[-1]
            return last.text if isinstance(last, Done) else None

        async def killer() -> None:
            for _ in range(kills):
                await asyncio.sleep(calm.wall_s / (kills + 2))
                os.kill((await facts_of(http)).pid, signal.SIGKILL)

        calm = await load("two replicas", clients, rounds, asker, texts)
        yield calm
        killing = asyncio.create_task(killer())
        yield await load("two replicas, killed under load", clients, rounds, asker, texts, kills)
        await killing


async def measure(folder: Path, clients: int, rounds: int, kills: int, tell: Callable[[Phase], None]) -> None:
    """All three runs, each told when it is over."""
    model = write_checkpoint(folder / "sdar", "sdar")
    core = load_core(EngineConfig(model=str(model), device="cpu", threads=1), lambda stage, done: None)
    texts = {number: drive(core, request_of(number, 0))[0].text for number in range(clients)}
    tell(await at_one_engine(model, clients, rounds, texts))
    options = ("--model", str(model), "--replicas", "2", "--cpus", "1", "--device", "cpu", "--jobs-at-once", "0")
    with team(folder, *options, "--jobs-a-minute", "0") as served:
        async for phase in at_a_team(served, clients, rounds, texts, kills):
            tell(phase)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp") as name:
        os.environ["LACUNA_HOME"] = name

        def tell(phase: Phase) -> None:
            print(json.dumps(asdict(phase)) if given.json else phase, flush=True)

        asyncio.run(measure(Path(name), given.clients, given.rounds, given.kills, tell))


if __name__ == "__main__":
    main()
