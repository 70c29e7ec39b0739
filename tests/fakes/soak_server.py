"""The real server as a process for a long run: `python -m tests.fakes.soak_server '{"seed": 1}'`.

With `model` in the script the engine is the real one, or the process that `command` starts; otherwise it is a
`VariedEngine`. With `leaks` the server keeps what every request worked on. Adds two requests for tests: `test/texts
{uris}` (the server's text of each, null when it is not open) and `test/memory` (what is allocated once all garbage is
gone), and the notifications `test/state {state, message}` and `test/garble {hex}`, which puts bytes between those the
engine sends.
"""

from __future__ import annotations

import gc
import json
import sys
from collections import Counter
from typing import Any

from lsp_server.__main__ import set_up_logging
from lsp_server.engine_client import Engine, EngineProcess, Patience
from lsp_server.engine_connection import Silence
from lsp_server.server import LacunaServer, create_server
from lsp_server.session import Session, Snapshot
from lsp_server.transport import serve_stdio
from tests.fakes.varied_engine import VariedEngine

# What may hang on a request or a document: our own objects, those of the wire, and what asyncio runs. (Of its timers
# it keeps up to a hundred that were cancelled.)
OWN = ("lsp_server.", "engine.", "lsprotocol.", "_asyncio.", "asyncio.locks.", "builtins.coroutine")


def engine_from(script: dict[str, Any]) -> Engine | VariedEngine:
    """The engine that a script in JSON names; to be made on the server's loop."""
    if "model" in script:
        silence = Silence(*script.get("silence", ()))
        patience = Patience(longest_retry_s=script.get("longest_retry_s", 30.0), silence=silence)
        return EngineProcess(script["model"], client="soak", command=script.get("command"), patience=patience)
    return VariedEngine(script["seed"])


def soak_server(script: dict[str, Any]) -> LacunaServer:
    """The real server with the methods for tests."""
    server = create_server(engine_from(script))

    @server.feature("test/texts")
    def texts(params: Any) -> dict[str, Any]:
        documents = {uri: server.session.document(uri) for uri in params.uris}
        told = [[uri, document.text if document is not None else None] for uri, document in documents.items()]
        return {"count": server.session.document_count, "texts": told}

    @server.feature("test/memory")
    def memory(params: Any) -> dict[str, Any]:
        gc.collect()
        objects = gc.get_objects()
        kinds = Counter(f"{type(item).__module__}.{type(item).__qualname__}" for item in objects)
        own = {kind: count for kind, count in kinds.items() if kind.startswith(OWN)}
        return {"blocks": sys.getallocatedblocks(), "objects": len(objects), "own": own}

    @server.feature("test/state")
    def move(params: Any) -> None:
        if isinstance(server.engine, VariedEngine):
            server.engine.move(params.state, params.message)

    @server.feature("test/garble")
    def garble(params: Any) -> None:
        connection = getattr(server.engine, "_connection", None)
        if connection is not None and connection.phase != "lost":
            connection._reader.feed_data(bytes.fromhex(params.hex))

    if script.get("leaks"):
        _leak(server.session)
    return server


def _leak(session: Session) -> None:
    kept, snapshot = [], session.snapshot

    def keeping(uri: str) -> Snapshot | None:
        kept.append(snapshot(uri))
        return kept[-1]

    session.snapshot = keeping  # type: ignore[method-assign]


def main() -> int:
    """Serve over stdio and return the exit code."""
    set_up_logging("WARNING")
    return serve_stdio(lambda: soak_server(json.loads(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
