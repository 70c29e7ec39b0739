"""A team's engine that follows the load: Ray Serve adds a replica when one has more to do than half a batch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.protocol.messages import Done, Rewrite
from engine.startup import load_core
from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.driving import drive
from tests.fakes.team_process import Team, ask, facts_of, team

PATIENCE_S = 400.0
CLIENTS = 12

pytestmark = pytest.mark.timeout(900)

REQUEST = Rewrite("r", "python", "", "x = 1\n", "", "Add one.", max_tokens=48)


async def replicas_under_load(served: Team, wanted: int) -> tuple[set[str], set[int]]:
    """Keep `CLIENTS` jobs going until `wanted` replicas have answered: the texts that came, and who answered."""
    texts: set[str] = set()
    seen: set[int] = set()

    async def client() -> None:
        while len(seen) < wanted:
            done = (await ask(http, REQUEST))[-1]
            assert isinstance(done, Done), done
            texts.add(done.text)

    async with served.client() as http, asyncio.timeout(PATIENCE_S):
        seen.add((await facts_of(http)).pid)
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(client())
            while len(seen) < wanted:
                seen.add((await facts_of(http)).pid)
                await asyncio.sleep(0.5)
    return texts, seen


def test_another_replica_comes_when_the_load_asks_for_it(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "model", "sdar")
    options = ("--model", str(model), "--replicas", "1:2", "--batch-canvases", "4", "--cpus", "0.5", "--device", "cpu")
    with team(tmp_path, *options, "--jobs-at-once", "64", "--jobs-a-minute", "0") as served:
        texts, seen = asyncio.run(replicas_under_load(served, wanted=2))
    assert len(seen) == 2
    core = load_core(EngineConfig(model=str(model), device="cpu", threads=1), lambda stage, done: None)
    assert texts == {drive(core, REQUEST)[0].text}
