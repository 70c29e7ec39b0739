"""A team's engine for real: Ray Serve, two replicas of a tiny model, many clients, and a replica that is killed.

Ray and the replicas take tens of seconds to start, so one cluster serves all tests of this file.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.protocol.http import HEALTH
from engine.protocol.messages import Done, Draft, Failed, Fill, Reply, Rewrite
from engine.startup import load_core
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.factory import engine_of
from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.driving import drive
from tests.fakes.team_process import Team, add_user, ask, facts_of, team

PATIENCE_S = 200.0
CLIENTS = 32

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: write_checkpoint(root / name, name) for name in ("sdar", "dream")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, models: dict[str, Path]) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("team")
    both = [word for path in models.values() for word in ("--model", str(path))]
    options = ("--replicas", "2", "--models-at-once", "2", "--cpus", "0.5", "--device", "cpu")
    with team(folder, *both, *options, "--jobs-at-once", "64", "--jobs-a-minute", "0") as serving:
        yield serving


def requests() -> list[Fill | Rewrite]:
    fills = [
        Fill(f"f{n}", "python", f"def add{n}(a, b):\n    return ", "\n\nprint(1)\n", max_tokens=24, wants_drafts=True)
        for n in range(CLIENTS // 2)
    ]
    return [
        *fills,
        *(Rewrite(f"r{n}", "python", "", f"x = {n}\n", "", "Add one.", max_tokens=48) for n in range(CLIENTS // 2)),
    ]


def texts_alone(model: Path) -> list[str]:
    """What each request's text is where nothing stands beside it."""
    core = load_core(EngineConfig(model=str(model), device="cpu", threads=1), lambda stage, done: None)
    return [drive(core, request)[0].text for request in requests()]


def text_of(replies: list[Reply]) -> str:
    assert isinstance(replies[-1], Done), replies[-1]
    return replies[-1].text


def test_thirty_two_clients_at_once_get_the_texts_they_would_get_alone(served: Team, models: dict[str, Path]) -> None:
    async def all_at_once() -> list[list[Reply]]:
        async with served.client() as http, asyncio.timeout(PATIENCE_S):
            return await asyncio.gather(*(ask(http, request) for request in requests()))

    found = asyncio.run(all_at_once())
    assert [text_of(replies) for replies in found] == texts_alone(models["sdar"])
    assert all(any(isinstance(reply, Draft) for reply in replies) for replies in found[: CLIENTS // 2])


def test_another_model_is_there_for_who_names_it(served: Team, models: dict[str, Path]) -> None:
    async def both() -> tuple[list[list[Reply]], str]:
        async with served.client() as http, asyncio.timeout(PATIENCE_S):
            dream = str(models["dream"])
            found = await asyncio.gather(*(ask(http, request, dream) for request in requests()[::4]))
            return found, (await facts_of(http)).model

    found, default = asyncio.run(both())
    assert [text_of(replies) for replies in found] == texts_alone(models["dream"])[::4]
    assert default.startswith("sdar-")


def test_a_replica_killed_under_load_loses_nothing(served: Team, models: dict[str, Path]) -> None:
    rounds = 3

    async def under_load() -> tuple[list[list[str]], set[int], int]:
        async with served.client() as http, asyncio.timeout(PATIENCE_S * 2):
            victim = (await facts_of(http)).pid

            async def client(request: Fill | Rewrite) -> list[str]:
                return [text_of(await ask(http, request)) for _ in range(rounds)]

            tasks = [asyncio.create_task(client(request)) for request in requests()]
            await asyncio.sleep(0.5)
            assert not any(task.done() for task in tasks), "there is no load to kill a replica under"
            os.kill(victim, signal.SIGKILL)
            found = await asyncio.gather(*tasks)
            seen: set[int] = set()
            # Serve puts another one in its place.
            while len(seen - {victim}) < 2:
                seen.add((await facts_of(http)).pid)
                await asyncio.sleep(0.05)
            return found, seen, victim

    found, seen, victim = asyncio.run(under_load())
    assert found == [[text] * rounds for text in texts_alone(models["sdar"])]
    assert victim not in seen


def test_the_language_server_s_engine_fills_there_by_its_settings(served: Team, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(served.token)
    token.chmod(0o600)
    drafts: list[Draft] = []

    async def through_the_settings() -> Done:
        engine = engine_of(EngineChoice(served.url, "auto", "", str(token), PATIENCE_S), "unused")
        try:
            async with asyncio.timeout(PATIENCE_S):
                engine.start()
                return await engine.submit(requests()[0], drafts.append, wait=True)
        finally:
            await engine.close()

    assert asyncio.run(through_the_settings()).id == "f0"
    assert drafts


def test_a_new_user_is_let_in_and_an_old_one_kept_out_without_a_restart(served: Team) -> None:
    async def until_status(token: str, status: int) -> None:
        async with served.client(token) as http, asyncio.timeout(PATIENCE_S):
            while (await http.get("/v1/facts")).status_code != status:
                await asyncio.sleep(0.2)

    async def replica() -> int:
        async with served.client() as http:
            return (await facts_of(http)).pid

    bob = add_user("bob", served.tokens)
    asyncio.run(until_status(bob, 200))
    before = asyncio.run(replica())
    kept = [line for line in served.tokens.read_text().splitlines(keepends=True) if not line.startswith("bob")]
    served.tokens.write_text("".join(kept))
    asyncio.run(until_status(bob, 401))
    asyncio.run(until_status(served.token, 200))
    os.kill(before, 0)


def test_health_and_refusals(served: Team) -> None:
    async def looked_at() -> tuple[int, list[Reply]]:
        async with served.client("wrong") as http:
            return (await http.get(HEALTH)).status_code, await ask(http, requests()[0])

    health, (refused,) = asyncio.run(looked_at())
    assert health == 200
    assert isinstance(refused, Failed)
    assert refused.kind == "bad_token"
