"""What happens to an engine in the world, done to real processes: the server answers, recovers, and says it once."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from engine.protocol.errors import EngineError
from engine.protocol.messages import PROTOCOL_VERSION
from lsp_server import __version__
from lsp_server.engine_client import EngineGone, EngineProcess, Patience
from lsp_server.engine_upgrade import Upgrade
from tests.fakes.daemons import (
    DAEMON,
    ENDLESS,
    HASTY,
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
RESTLESS = Patience(0.05, silence=HASTY)


@pytest.fixture
def home() -> Iterator[Path]:
    with daemon_home() as folder:
        yield folder


async def running_fill(engine: EngineProcess, job_id: str = "runs") -> asyncio.Task[object]:
    """A request without an end, once its first draft is there."""
    drafted = asyncio.Event()
    task: asyncio.Task[object] = asyncio.create_task(engine.submit(fill(job_id, ENDLESS), lambda _: drafted.set()))
    await drafted.wait()
    return task


async def test_a_step_that_hangs_is_answered_and_the_next_request_is_served(home: Path) -> None:
    async with client_of(home, options=("--step-limit-s", "0.3")) as engine:
        facts = await engine.ready()
        with pytest.raises(EngineError, match=r"did not end|went away") as caught:
            await engine.submit(fill("hangs", "steps=1 delay=1000"))
        assert caught.value.kind == "gone"
        # Who asks in the same moment may still meet the old one.
        while (await engine.ready()).pid == facts.pid:
            await asyncio.sleep(0.01)
        assert (await engine.submit(fill("next"), wait=True)).text == "abcdef"
        await asyncio.to_thread(gone, facts.pid)
    log = (home / "state" / "engine-scripted.log").read_text(encoding="utf-8")
    assert log.count("a step has not ended") == 1
    await stop(home)


async def test_a_suspended_engine_is_replaced(home: Path) -> None:
    async with client_of(home, patience=RESTLESS) as engine:
        facts = await engine.ready()
        task = await running_fill(engine)
        os.kill(facts.pid, signal.SIGSTOP)
        with pytest.raises(EngineGone, match="does not answer"):
            await task
        assert (await engine.submit(fill("next"), wait=True)).text == "abcdef"
        assert (await engine.ready()).pid != facts.pid
        await asyncio.to_thread(gone, facts.pid)
    await stop(home)


async def test_a_short_sleep_costs_nothing(home: Path) -> None:
    async with client_of(home) as engine:
        facts = await engine.ready()
        task = asyncio.create_task(engine.submit(fill("sleeps", "steps=20 delay=0.01 text=slept")))
        os.kill(facts.pid, signal.SIGSTOP)
        await asyncio.sleep(1.0)
        os.kill(facts.pid, signal.SIGCONT)
        assert getattr(await task, "text", None) == "slept"
        assert (await engine.ready()).pid == facts.pid
    await stop(home)


CLIENT = """
import asyncio, os, sys
from lsp_server.engine_client import EngineProcess, Patience
from tests.fakes.daemons import DAEMON, HASTY, fill

async def main():
    engine = EngineProcess("scripted", command=DAEMON, patience=Patience(0.05, silence=HASTY))
    facts = await engine.ready()
    task = asyncio.create_task(engine.submit(fill("long", "steps=100 delay=0.01 text=slept")))
    await asyncio.sleep(0.1)
    print(facts.pid, flush=True)
    done = await task
    print(done.text, (await engine.ready()).pid, flush=True)
    await engine.close()

asyncio.run(main())
"""


async def test_a_server_that_slept_longer_than_its_patience_does_not_blame_the_engine(home: Path) -> None:
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT), env=env_of(home), stdout=asyncio.subprocess.PIPE
    )
    assert client.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        pid = int(await client.stdout.readline())
        # As a laptop's lid does it: both, and for longer than either would wait for the other.
        for number in (client.pid, pid):
            os.kill(number, signal.SIGSTOP)
        await asyncio.sleep(HASTY.lost_after_s + 1.0)
        for number in (client.pid, pid):
            os.kill(number, signal.SIGCONT)
        assert (await client.stdout.readline()).split() == [b"slept", str(pid).encode()]
        assert await client.wait() == 0
    await stop(home)


async def test_a_removed_socket_is_made_anew_for_the_next_editor(home: Path) -> None:
    async with client_of(home) as engine, client_of(home) as other:
        facts = await engine.ready()
        task = await running_fill(engine)
        address_in(home).path.unlink()
        assert (await other.submit(fill("a"), wait=True)).text == "abcdef"
        assert (await other.ready()).pid == facts.pid
        task.cancel()
    await stop(home)


async def test_with_its_whole_folder_removed_another_engine_serves_and_the_old_one_leaves(home: Path) -> None:
    async with client_of(home) as engine, client_of(home) as other:
        facts = await engine.ready()
        shutil.rmtree(address_in(home).directory)
        assert (await other.submit(fill("a"), wait=True)).text == "abcdef"
        assert (await other.ready()).pid != facts.pid
        await asyncio.to_thread(gone, facts.pid)
        assert (await engine.submit(fill("b"), wait=True)).text == "abcdef"
        assert len(engines_in(home)) == 1
    await stop(home)


async def test_killed_while_it_loads_it_is_said_once_as_the_lack_of_memory_it_mostly_is(home: Path) -> None:
    told: list[tuple[str, str]] = []
    async with client_of(home, "seconds=0.1 kill=9") as engine:
        engine.on_state(lambda state, message: told.append((state, message)))
        with pytest.raises(EngineError, match="memory runs out") as caught:
            await engine.submit(fill("a"), wait=True)
        assert caught.value.kind == "out_of_memory"
        failed = [message for state, message in told if state == "failed"]
        assert len(failed) == 1
        # It is tried again with growing pauses, and as long as it fails alike nothing more is told.
        async with asyncio.timeout(PATIENCE_S):
            while (home / "state" / "engine-scripted.log").read_text().count("serving scripted") < 3:
                await asyncio.sleep(0.05)
        assert [message for state, message in told if state == "failed"] == failed


async def test_killed_again_and_again_it_comes_back_each_time(home: Path) -> None:
    told: list[str] = []
    async with client_of(home) as engine:
        engine.on_state(lambda state, _: told.append(state))
        pids = []
        for number in range(4):
            facts = await engine.ready()
            pids.append(facts.pid)
            task = await running_fill(engine, str(number))
            os.kill(facts.pid, signal.SIGKILL)
            with pytest.raises(EngineGone):
                await task
            assert (await engine.submit(fill(f"{number} again"), wait=True)).text == "abcdef"
        assert len(set(pids)) == 4
        assert "failed" not in told
    await stop(home)


# Places that cannot be written to


# Nothing more can be written to any file, as with a quota that is used up.
FULL_DISK = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"]


def without_trace(home: Path) -> dict[str, str]:
    return {name: value for name, value in env_of(home).items() if name != "SCRIPTED_TRACE"}


async def test_on_a_full_disk_it_serves_without_a_log(home: Path) -> None:
    engine = EngineProcess("scripted", command=[*FULL_DISK, *DAEMON], env=without_trace(home))
    async with asyncio.timeout(PATIENCE_S):
        assert (await engine.submit(fill("a"), wait=True)).text == "abcdef"
        await engine.close()
        await stop(home)
    assert (home / "state" / "engine-scripted.log").read_bytes() == b""


async def test_where_no_endpoint_can_be_written_it_says_so(home: Path) -> None:
    ran = await asyncio.to_thread(
        subprocess.run,
        [*FULL_DISK, *DAEMON, "--transport", "tcp"],
        env=without_trace(home),
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 1
    assert f"cannot be listened on ({os.strerror(errno.EFBIG)})" in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_a_home_that_cannot_be_made_is_said_with_a_remedy(home: Path) -> None:
    (home / "file").write_text("")
    env = {**env_of(home), "LACUNA_HOME": str(home / "file" / "home")}
    engine = EngineProcess("scripted", command=DAEMON, env=env, patience=Patience(0.05))
    with pytest.raises(EngineError) as caught:
        await engine.ready()
    assert "LACUNA_HOME" in caught.value.remedy
    await engine.close()


# Versions


async def test_a_newer_client_replaces_the_engine_of_an_older_version_once_its_work_is_done(home: Path) -> None:
    async with client_of(home, "version=0.0.1") as old:
        # An editor that was started before the upgrade, and is of that version itself.
        old._upgrade = Upgrade("0.0.1")
        facts = await old.ready()
        assert facts.engine_version == "0.0.1"
        work = asyncio.create_task(old.submit(fill("work", "steps=40 delay=0.02 text=finished")))
        async with client_of(home) as new:
            fresh = await new.ready()
            assert (fresh.engine_version, fresh.pid != facts.pid) == (__version__, True)
            assert (await work).text == "finished"
            assert (await new.submit(fill("a"))).text == "abcdef"
        assert (await old.submit(fill("b"), wait=True)).text == "abcdef"
        assert (await old.ready()).pid == fresh.pid
    await stop(home)


async def test_an_engine_that_comes_back_old_is_lived_with(home: Path) -> None:
    async with client_of(home, "version=0.0.1") as engine:
        facts = await engine.ready()
        assert facts.engine_version == "0.0.1"
        assert (await engine.submit(fill("a"))).text == "abcdef"
    await stop(home)


OTHER_PROTOCOL = f"""
import os, sys
import engine.protocol.messages as messages
messages.PROTOCOL_VERSION = {PROTOCOL_VERSION} + 1
from tests.fakes.scripted_core import main
sys.exit(main(["--model", "scripted"], os.environ))
"""


async def test_two_protocol_versions_live_side_by_side(home: Path) -> None:
    later = [sys.executable, "-c", OTHER_PROTOCOL]
    other = await asyncio.create_subprocess_exec(*later, env=env_of(home), stderr=asyncio.subprocess.PIPE)
    assert other.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while b"ready after" not in (line := await other.stderr.readline()):
                assert line, "the other engine left"
            async with client_of(home) as engine:
                assert (await engine.ready()).pid != other.pid
                assert (await engine.submit(fill("a"))).text == "abcdef"
                assert other.returncode is None
        sockets = sorted(path.name for path in address_in(home).directory.glob("*.sock"))
        assert sockets == [f"scripted-v{PROTOCOL_VERSION + more}.sock" for more in (0, 1)]
        await stop(home)
        assert other.returncode is None
    finally:
        other.kill()
        await other.communicate()


# Many at once


def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


async def test_twenty_editors_that_start_at_once_share_one_engine(home: Path) -> None:
    racer = (
        "import asyncio; from lsp_server.engine_client import EngineProcess\n"
        "from tests.fakes.daemons import DAEMON, fill\n"
        "async def main():\n"
        "    engine = EngineProcess('scripted', command=DAEMON)\n"
        "    done = await engine.submit(fill('same id'), wait=True)\n"
        "    print((await engine.ready()).pid, done.text)\n"
        "    await engine.close()\n"
        "asyncio.run(main())\n"
    )
    env = env_of(home, "seconds=0.2")
    async with AsyncExitStack() as stack:
        racers = []
        for _ in range(20):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", racer), env=env, stdout=asyncio.subprocess.PIPE
            )
            stack.callback(end, process)
            racers.append(process)
        async with asyncio.timeout(4 * PATIENCE_S):
            said = [(await process.communicate())[0].split() for process in racers]
    assert len({pid for pid, _ in said}) == 1
    assert [text for _, text in said] == [b"abcdef"] * 20
    await stop(home)
    assert engines_in(home) == []
