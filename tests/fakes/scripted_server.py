"""The real server around a scripted engine, as a process: `python -m tests.fakes.scripted_server '{"replies": [...]}'`.

Adds three methods for tests: request `test/engine` (what the engine saw), notification `test/release` (let held
answers go), notification `test/state {state, message}`. `{"idle_limit_s": 2}` has a real engine process instead, which
leaves after so many seconds without a job.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from engine.protocol.errors import EngineError
from lsp_server.__main__ import set_up_logging
from lsp_server.clock import Clock
from lsp_server.engine_client import EngineProcess, Patience
from lsp_server.server import LacunaServer, create_server
from lsp_server.transport import serve_stdio
from tests.fakes.fake_engine import FakeEngine, Reply


def engine_from(script: dict[str, Any]) -> FakeEngine:
    """An engine that follows a script in JSON."""
    replies = [_reply(**raw) for raw in script.get("replies", [{}])]
    state = script.get("state", "ready")
    return FakeEngine(replies=replies, state=state, state_after_start=script.get("after_start", "ready"))


def _reply(
    error: list[str] | None = None, drafts: tuple[str, ...] = (), alternatives: tuple[str, ...] = (), **fields: Any
) -> Reply:
    fault = EngineError(*error) if error is not None else None
    return Reply(error=fault, drafts=tuple(drafts), alternatives=tuple(alternatives), **fields)


def scripted_server(script: dict[str, Any], clock: Clock | None = None) -> LacunaServer:
    """The real server around an engine that follows `script`, with the three methods for tests."""
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

    @server.feature("test/state")
    def move(params: Any) -> None:
        engine.move(params.state, params.message)

    return server


def _with_real_engine(idle_limit_s: str) -> LacunaServer:
    """The real server, and for an engine a real process around a scripted core, in the folder `LACUNA_HOME`."""
    options = ["--model", "scripted", "--idle-limit-s", idle_limit_s]
    command = [sys.executable, "-m", "tests.fakes.scripted_core", *options]
    return create_server(EngineProcess("scripted", command=command, patience=Patience(0.05)))


def main() -> int:
    """Serve over stdio and return the exit code."""
    set_up_logging("WARNING")
    return serve_stdio(lambda: scripted_server(json.loads(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
