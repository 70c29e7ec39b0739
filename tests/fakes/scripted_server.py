"""The real server around a scripted engine, as a process: `python -m tests.fakes.scripted_server '{"replies": [...]}'`.

The script is the first argument that begins with `{`, or a file's name behind an `@`; what else an editor puts on the
command line (`lsp`, `--stdio`) is of no account. The members of a reply are those of `fake_engine.Reply`, such as

    {"text": "b", "drafts": [["x y", 1], "b"], "hold_drafts": true, "kind": "rewrite", "about": "Return b"}

Adds methods for tests: request `test/engine` (what the engine saw), and the notifications `test/release` (let held
answers go), `test/step {count?}` (let so many held drafts go), `test/state {state, message, remedy?}` and
`test/loading {stage, fraction}`. `{"idle_limit_s": 2}` has a real engine process instead, which leaves after so many
seconds without a job.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.protocol.errors import EngineError
from engine.protocol.messages import Loading
from lsp_server.__main__ import set_up_logging
from lsp_server.clock import Clock
from lsp_server.engine_client import EngineProcess, Patience
from lsp_server.own_requests import plain
from lsp_server.server import LacunaServer, create_server
from lsp_server.transport import serve_stdio
from tests.fakes.fake_engine import FakeEngine, Reply


def engine_from(script: dict[str, Any]) -> FakeEngine:
    """An engine that follows a script in JSON."""
    replies = [_reply(**raw) for raw in script.get("replies", [{}])]
    state = script.get("state", "ready")
    return FakeEngine(replies=replies, state=state, state_after_start=script.get("after_start", "ready"))


def _reply(
    error: list[str] | None = None,
    drafts: list[str | list[Any]] | tuple[str, ...] = (),
    alternatives: tuple[str, ...] = (),
    **fields: Any,
) -> Reply:
    fault = EngineError(*error) if error is not None else None
    told = tuple(draft if isinstance(draft, str) else (str(draft[0]), int(draft[1])) for draft in drafts)
    return Reply(error=fault, drafts=told, alternatives=tuple(alternatives), **fields)


def scripted_server(script: dict[str, Any], clock: Clock | None = None) -> LacunaServer:
    """The real server around an engine that follows `script`, with the methods for tests."""
    if "idle_limit_s" in script:
        return _with_real_engine(str(script["idle_limit_s"]))
    engine = engine_from(script)
    server = create_server(engine, clock)

    @server.feature("test/engine")
    def report(params: Any) -> dict[str, Any]:
        return {
            "requests": [asdict(request) | {"type": type(request).__name__} for request in engine.requests],
            "cancelled": engine.cancelled,
            "starts": engine.starts,
        }

    @server.feature("test/release")
    def release(params: Any) -> None:
        engine.release()

    @server.feature("test/step")
    def step(params: Any) -> None:
        engine.step(plain(params).get("count", 1))

    @server.feature("test/state")
    def move(params: Any) -> None:
        given = plain(params)
        engine.move(given["state"], given["message"], given.get("remedy", ""))

    @server.feature("test/loading")
    def load(params: Any) -> None:
        engine.tell_loading(Loading(params.stage, params.fraction))

    return server


def script_in(arguments: list[str]) -> dict[str, Any]:
    """The script that a command line names."""
    named = next(argument for argument in arguments if argument.startswith(("{", "@")))
    text = Path(named[1:]).read_text(encoding="utf-8") if named.startswith("@") else named
    return dict(json.loads(text))


def _with_real_engine(idle_limit_s: str) -> LacunaServer:
    """The real server, and for an engine a real process around a scripted core, in the folder `LACUNA_HOME`."""
    options = ["--model", "scripted", "--idle-limit-s", idle_limit_s]
    command = [sys.executable, "-m", "tests.fakes.scripted_core", *options]
    return create_server(EngineProcess("scripted", command=command, patience=Patience(0.05)))


def main() -> int:
    """Serve over stdio and return the exit code."""
    set_up_logging("WARNING")
    script = script_in(sys.argv[1:])
    return serve_stdio(lambda: scripted_server(script))


if __name__ == "__main__":
    sys.exit(main())
