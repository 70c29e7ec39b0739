"""Where a protocol case is played: servers, engines and editors as its `Setup` says, all gone afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from lsp_server.engine_client import EngineProcess
from lsp_server.server import create_server
from tests.fakes import lsp_client as lsp
from tests.fakes.fake_editor import FakeClock
from tests.fakes.lsp_actions import CONFIRMING
from tests.fakes.lsp_link import LocalLink, ProcessLink
from tests.fakes.protocol_case import Setup, substituted
from tests.fakes.protocol_checks import matches
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import running
from tests.fakes.scripted_core import ScriptedCore
from tests.fakes.scripted_server import scripted_server

PULLING: dict[str, Any] = lsp.VSCODE | {"workspace": {"configuration": True, "workspaceFolders": True}}
CLIENTS: dict[str, dict[str, Any]] = {
    "vscode": lsp.VSCODE,
    "confirming": CONFIRMING,
    "pulling": PULLING,
}


@dataclass
class Stage:
    """What a case is played with. `clock`, `core` and `home` are there where the setup asks for them."""

    setup: Setup
    encoding: str = "utf-16"
    clients: list[lsp.LspClient] = field(default_factory=list)
    clock: FakeClock | None = None
    core: ScriptedCore | None = None
    home: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    pulls: int = 0
    root: str = ""

    def configuration(self, params: Any) -> list[Any]:
        """What the editors answer to `workspace/configuration`."""
        self.pulls += 1
        return [self.settings.get(item.get("scopeUri", "all")) for item in params["items"]]

    def engines(self) -> list[psutil.Process]:
        """The engine processes of this stage that run."""
        found = []
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
                ours = "tests.fakes.scripted_core" in command and str(self.home) in process.environ().values()
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found


@asynccontextmanager
async def stage(setup: Setup, folder: Path) -> AsyncIterator[Stage]:
    """A stage with its editors initialized. `folder` is the case's own, for its files."""
    made = Stage(setup, settings=dict(setup.settings or {}), root=folder.as_uri())
    for name, text in setup.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    async with AsyncExitStack() as stack:
        connect = await _connector(made, stack)
        try:
            for _ in range(setup.editors):
                client = lsp.LspClient(await connect())
                made.clients.append(client)
                await _greet(made, client)
            yield made
        finally:
            for client in made.clients:
                client.link.kill()
                await client.wait()
                # pytest shows this with a failure: the server's side of the story.
                sys.stderr.write(client.log.decode(errors="replace"))


async def _connector(made: Stage, stack: AsyncExitStack) -> Callable[[], Any]:
    """What connects one more editor to a server of its own."""
    setup = made.setup
    script: dict[str, Any] = {
        "replies": list(setup.says) or [{}],
        "state": setup.state,
        "after_start": setup.state_after_start,
    }
    if setup.engine == "scripted" and setup.link == "process":
        return lambda: _process(script)
    made.clock = FakeClock() if setup.engine == "scripted" else None
    if setup.engine == "scripted":
        return lambda: _local(scripted_server(script, made.clock))
    made.home = stack.enter_context(short_home())
    if setup.engine == "daemon":
        script = {"idle_limit_s": setup.idle_limit_s}
        stack.callback(lambda: [process.kill() for process in made.engines()])
        return lambda: _process(script, LACUNA_HOME=str(made.home))
    service = await stack.enter_async_context(running(made.home))
    made.core = service.core
    engine = EngineProcess("scripted", command=["true"], env={"LACUNA_HOME": str(made.home)})
    stack.push_async_callback(engine.close)
    return lambda: _local(create_server(engine))


async def _local(server: Any) -> LocalLink:
    return LocalLink(server)


async def _process(script: dict[str, Any], **env: str) -> ProcessLink:
    return ProcessLink(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.fakes.scripted_server", json.dumps(script)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 26,
            env=os.environ | env | {"PYTHONWARNINGS": "error"},
        )
    )


async def _greet(made: Stage, client: lsp.LspClient) -> None:
    """Initialize as the setup says, and find out which encoding was agreed on."""
    setup = made.setup
    capabilities = merged(CLIENTS[setup.client], setup.capabilities)
    capabilities["general"] = {} if setup.encodings == ("absent",) else {"positionEncodings": setup.encodings}
    client.answers["workspace/configuration"] = made.configuration
    client.answers["window/workDoneProgress/create"] = lambda _params: None
    # Every request a case makes is one of its own, however fast they follow each other, unless it is about that.
    paced = {} if setup.paced else {"inlineCompletion": {"debounceMs": 0}}
    options = merged(paced, substituted(setup.options, {"root": made.root}))
    answered = await lsp.initialize(client, capabilities, options, list(setup.folders) or None)
    assert setup.answered is None or matches(setup.answered, answered), answered
    made.encoding = answered["positionEncoding"]
    client.notify("initialized", {})


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`, object by object."""
    result = dict(below)
    for key, value in above.items():
        inner = result.get(key)
        result[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result
