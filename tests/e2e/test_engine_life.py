"""The engine's life as a real process, found and started by the real client: races, kills, stops, returns."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.protocol.address import Transport
from engine.protocol.errors import EngineError
from engine.protocol.messages import Draft
from lsp_server.engine_client import EngineGone
from tests.fakes.daemons import (
    DAEMON,
    ENDLESS,
    address_in,
    client_of,
    daemon_home,
    engines_in,
    env_of,
    fill,
    gone,
    stop,
)
from tests.fakes.raw_client import PATIENCE_S

pytestmark = pytest.mark.asyncio


@pytest.fixture
def home() -> Iterator[Path]:
    with daemon_home() as folder:
        yield folder


def steps_of(home: Path) -> dict[str, int]:
    lines = (home / "trace").read_text(encoding="utf-8").split("\n")
    return {job_id: int(step) for job_id, step in (line.split() for line in lines if line)}


@pytest.mark.parametrize("transport", ["unix", "tcp"])
async def test_it_is_started_on_demand_serves_and_stops(home: Path, transport: Transport) -> None:
    async with client_of(home, "seconds=0.1", transport) as engine:
        drafts: list[Draft] = []
        with pytest.raises(EngineError) as caught:
            await engine.submit(fill("early"))
        assert caught.value.kind == "loading"
        done = await engine.submit(fill("a"), drafts.append, wait=True)
        assert done.text == "abcdef"
        assert [draft.text for draft in drafts] == ["ab", "abcd", "abcdef"]
        address = address_in(home, transport)
        assert stat.S_IMODE(address.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(address.directory.stat().st_mode) == 0o700
    await stop(home, transport)
    assert not address.path.exists()


async def test_it_survives_its_client_and_is_found_again(home: Path) -> None:
    async with client_of(home) as engine:
        first = await engine.ready()
    async with client_of(home) as engine:
        assert await engine.ready() == first
    await stop(home)


async def test_a_race_of_five_clients_gives_one_engine(home: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(client_of(home, "seconds=0.2")) for _ in range(5)]
        facts = await asyncio.gather(*(engine.ready() for engine in engines))
        assert len({one.pid for one in facts}) == 1
        results = await asyncio.gather(*(engine.submit(fill("same id")) for engine in engines))
        assert [done.text for done in results] == ["abcdef"] * 5
        assert (await engines[0].status()).clients == 5
    await stop(home)
    assert engines_in(home) == []


async def test_killed_under_a_request_it_fails_that_request_and_serves_the_next(home: Path) -> None:
    async with client_of(home) as engine:
        facts = await engine.ready()
        drafted = asyncio.Event()
        task = asyncio.create_task(engine.submit(fill("a", ENDLESS), lambda _: drafted.set()))
        await drafted.wait()
        os.kill(facts.pid, signal.SIGKILL)
        async with asyncio.timeout(1.0):
            with pytest.raises(EngineGone):
                await task
        assert address_in(home).path.exists(), "a killed engine leaves its socket behind"
        assert (await engine.submit(fill("b"), wait=True)).text == "abcdef"
        assert (await engine.ready()).pid != facts.pid
    await stop(home)


async def test_a_cancelled_request_computes_nothing_more(home: Path) -> None:
    async with client_of(home) as engine:
        await engine.ready()
        drafted = asyncio.Event()
        task = asyncio.create_task(engine.submit(fill("a", ENDLESS), lambda _: drafted.set()))
        await drafted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while (await engine.status()).jobs_cancelled == 0:
            pass
        computed = steps_of(home)["a"]
        await engine.submit(fill("b", "steps=5"))
        assert steps_of(home) == {"a": computed, "b": 5}
    await stop(home)


async def test_a_client_that_is_killed_takes_its_jobs_along(home: Path) -> None:
    async with client_of(home) as witness:
        await witness.ready()
        program = (
            "import asyncio, sys; from pathlib import Path; from lsp_server.engine_connection import connect\n"
            "from engine.protocol.address import engine_address; from engine.protocol.messages import Fill\n"
            "async def main():\n"
            "    connection = await connect(engine_address('scripted', {'LACUNA_HOME': sys.argv[1]}), 'victim')\n"
            f"    await connection.submit(Fill('v', 'python', '{ENDLESS}', '', wants_drafts=True), "
            "lambda _: print('drafted', flush=True))\n"
            "asyncio.run(main())\n"
        )
        victim = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(home), stdout=asyncio.subprocess.PIPE
        )
        assert victim.stdout is not None
        assert await victim.stdout.readline() == b"drafted\n"
        victim.kill()
        await victim.communicate()
        while (report := await witness.status()).jobs_cancelled == 0:
            pass
        assert (report.jobs_running, report.clients) == (0, 1)
    await stop(home)


async def test_a_terminated_engine_leaves_cleanly_and_answers_what_it_ran(home: Path) -> None:
    async with client_of(home) as engine:
        facts = await engine.ready()
        off = asyncio.Event()
        engine.on_state(lambda state, _: off.set() if state == "off" else None)
        drafted = asyncio.Event()
        task = asyncio.create_task(engine.submit(fill("a", ENDLESS), lambda _: drafted.set()))
        await drafted.wait()
        os.kill(facts.pid, signal.SIGTERM)
        with pytest.raises(EngineError) as caught:
            await task
        assert caught.value.kind == "draining"
        await off.wait()
        await asyncio.to_thread(gone, facts.pid)
        assert not address_in(home).path.exists()


async def test_terminated_while_loading_it_leaves(home: Path) -> None:
    async with client_of(home, "seconds=60") as engine:
        loading = asyncio.Event()
        engine.on_loading(lambda _: loading.set())
        engine.start()
        await loading.wait()
        (process,) = engines_in(home)
        process.terminate()
        await asyncio.to_thread(gone, process.pid)
        await engine.close()


async def test_an_idle_engine_leaves_and_comes_back_when_needed(home: Path) -> None:
    async with client_of(home, options=("--idle-limit-s", "0.2")) as engine:
        off = asyncio.Event()
        facts = await engine.ready()
        engine.on_state(lambda state, _: off.set() if state == "off" else None)
        await off.wait()
        await asyncio.to_thread(gone, facts.pid)
        assert engines_in(home) == []
        assert (await engine.submit(fill("a"), wait=True)).text == "abcdef"


async def test_a_model_that_is_missing_is_said_once_and_not_tried_in_a_loop(home: Path) -> None:
    async with client_of(home, "fail=model_missing") as engine:
        told: list[tuple[str, str]] = []
        engine.on_state(lambda state, message: told.append((state, message)))
        for _ in range(3):
            with pytest.raises(EngineError, match="not there") as caught:
                await engine.submit(fill("a"), wait=True)
            assert (caught.value.kind, caught.value.remedy) == ("model_missing", "pull it")
        failed = [message for state, message in told if state == "failed"]
        assert failed == ["the scripted model is not there. Pull it."]
    log = (home / "state" / "engine-scripted.log").read_text(encoding="utf-8")
    assert log.count("engine failed: ") == 1
    assert "Traceback" not in log


async def test_a_folder_planted_by_a_link_is_refused_by_client_and_engine(home: Path) -> None:
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "run").symlink_to(home / "elsewhere")
    async with client_of(home) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.ready()
        assert caught.value.kind == "unsafe_address"
    ran = await asyncio.to_thread(run_daemon, home)
    assert ran.returncode == 1
    assert '"kind": "unsafe_address"' in ran.stderr
    assert list((home / "elsewhere").iterdir()) == []


async def test_a_second_engine_finds_the_first_and_says_so(home: Path) -> None:
    async with client_of(home) as engine:
        await engine.ready()
        ran = await asyncio.to_thread(run_daemon, home)
        assert (ran.returncode, ran.stderr) == (0, "an engine for scripted is already running\n")
        assert (await engine.submit(fill("a"))).text == "abcdef"
    await stop(home)


def run_daemon(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(DAEMON, env=env_of(home), capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("module", ["engine.service", "engine.cli.engine", "lsp_server.engine_client"])
async def test_neither_side_imports_the_model_to_talk(module: str) -> None:
    program = f"import sys, {module}; print([m for m in ('torch', 'transformers', 'numpy') if m in sys.modules])"
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert ran.stdout == "[]\n"
