"""A whole session of the real server and the real engine without a network: nothing listens, nothing is sent.

Every process runs with an audit hook from its first moment that writes down what is done with sockets and refuses all
but local ones; what native code might do past it is asked of the system.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.fakes.lsp_client import VSCODE, LspClient, area, initialize, place
from tests.fakes.lsp_link import ProcessLink
from tests.fakes.raw_client import short_home
from tests.fakes.tiny_model import write_tiny_gguf

ROOT = Path(__file__).parents[2]
GUARD = ROOT / "tests/fakes/local_sockets_only"
URI = "file:///w/a.py"
SECRET = "marker_of_the_document_42"
TEXT = f"def {SECRET}(a, b):\n    return \n\n\ndef other():\n    pass\n"
LOAD_LIMIT_S = 120.0


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(GUARD), str(ROOT), os.environ.get("PYTHONPATH", ""))),
        "SOCKET_TRACE": str(home / "sockets"),
        "LACUNA_HOME": str(home),
    }


def lacuna(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine.cli.main", *arguments]
    return subprocess.run(
        command, env=environment(home), capture_output=True, text=True, timeout=LOAD_LIMIT_S, check=False
    )


def trace(home: Path) -> list[tuple[int, str, str]]:
    lines = (home / "sockets").read_text(encoding="utf-8").split("\n")
    found = [line.split("\t", 2) for line in lines if line]
    return [(int(pid), event, address) for pid, event, address in found]


@asynccontextmanager
async def editor(home: Path, model: Path) -> AsyncIterator[tuple[LspClient, int]]:
    """An initialized session with a server process, and the server's process id."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lsp_server", "--model", str(model), "--log-level", "INFO"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home),
    )
    client = LspClient(ProcessLink(process))
    try:
        await initialize(client, VSCODE)
        client.notify("initialized", {})
        yield client, process.pid
        assert await client.leave() == 0
    finally:
        client.link.kill()
        await client.wait()


async def engine_of(client: LspClient) -> int:
    """The engine's process id, once its model is loaded."""
    async with asyncio.timeout(LOAD_LIMIT_S):
        while True:
            status = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
            if status["state"] == "ready":
                return int(status["facts"]["pid"])
            await asyncio.sleep(0.1)


async def use_everything(client: LspClient) -> None:
    """What a person does: types, takes what is offered, rewrites, asks for actions, and closes."""
    document = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
    client.notify("textDocument/didOpen", {"textDocument": document})
    await client.request("textDocument/inlineCompletion", {**place(URI, 1, 11), "context": {"triggerKind": 1}})
    await client.request("textDocument/completion", {**place(URI, 1, 11), "context": {"triggerKind": 1}})
    rewrite = {"textDocument": {"uri": URI, "version": 1}, "range": area((4, 0), (6, 0)), "instruction": "Shorten it."}
    await asyncio.gather(client.request("lacuna/rewrite", rewrite), return_exceptions=True)
    context = {"diagnostics": [], "triggerKind": 1}
    asked = {"textDocument": {"uri": URI}, "range": area((4, 0), (6, 0)), "context": context}
    await client.request("textDocument/codeAction", asked)
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})


@pytest.mark.asyncio
async def test_a_whole_session_needs_local_sockets_only(home: Path) -> None:
    model = home / "tiny.gguf"
    write_tiny_gguf(model)
    async with editor(home, model) as (client, server):
        engine = await engine_of(client)
        await use_everything(client)
        for pid in (server, engine):
            assert psutil.Process(pid).net_connections("inet") == [], "a network socket is open"
    status = lacuna(home, "engine", "status", "--model", str(model))
    stopped = lacuna(home, "engine", "stop", "--model", str(model))
    assert (status.returncode, stopped.returncode) == (0, 0), status.stderr + stopped.stderr
    seen = trace(home)
    assert {"socket.bind", "socket.connect"} >= {event for _, event, _ in seen}, (
        "more than local sockets were asked for"
    )
    assert all(Path(address).parent == home / "run" for _, _, address in seen)
    assert {pid for pid, event, _ in seen if event == "socket.bind"} == {engine}, "somebody else listens"
    assert server in {pid for pid, event, _ in seen if event == "socket.connect"}
    logs = [path.read_bytes() for path in home.glob("state/*.log*")] + [client.log]
    assert logs
    assert not any(SECRET.encode() in log for log in logs), "document text in a log"


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
        "import socket; socket.socket().bind(('127.0.0.1', 0))",
        "import urllib.request; urllib.request.urlopen('http://localhost:9', timeout=1)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    ],
)
def test_the_guard_sees_and_refuses_a_network(home: Path, code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], env=environment(home), capture_output=True, check=False)
    assert done.returncode == 1
    assert b"only local sockets here" in done.stderr
    assert trace(home)
