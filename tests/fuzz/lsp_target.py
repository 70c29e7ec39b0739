"""Fuzzing a whole language server inside this process: lines of bytes as the bodies of LSP messages.

Whatever comes, nothing is raised and every request with an id has exactly one response. Ids are numbered anew on their
way in, so that two requests never share one.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from lsp_server.server import LacunaServer, create_server
from tests.fakes.fake_engine import FakeEngine, Reply

URI = "file:///a.py"
TEXT = "def total(a, b):\r\n    return é + a\n\n# lacuna: use sum\nx = <fill>\n"
_PLACE = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 8}}
_SPAN = {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
_TURNS_PER_INPUT = 3
# Beyond the ids that messages bring along and that are no requests.
_FIRST_ID = 10**6


class Sink:
    """Counts the responses the server sends by their ids."""

    def __init__(self) -> None:
        self.answered: Counter[Any] = Counter()

    def write(self, data: bytes) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        if "method" not in message and message.get("id") is not None:
            self.answered[message["id"]] += 1

    def close(self) -> None:
        """Nothing is kept open."""


class LspTarget:
    """One server after the other, each for `inputs_each` inputs. Belongs to one thread."""

    def __init__(self, inputs_each: int) -> None:
        self._inputs_each = inputs_each
        self._loop = asyncio.new_event_loop()
        self._inputs = 0
        self._begin()

    def __call__(self, data: bytes) -> None:
        self._loop.run_until_complete(self._take(data))
        self._inputs += 1
        if self._inputs >= self._inputs_each or self._server.protocol.exit_code == 0:
            self.finish()

    def finish(self) -> None:
        """Ask every request of the present server for its one response, and begin a new one."""
        self._loop.run_until_complete(self._server.protocol.drain(5))
        wrong = {number: self._sink.answered[number] for number in self._asked if self._sink.answered[number] != 1}
        assert not wrong, f"responses by id, of {len(self._asked)} requests: {wrong}"
        self._begin()

    def close(self) -> None:
        """End the event loop."""
        self.finish()
        self._loop.close()

    def _begin(self) -> None:
        self._inputs, self._asked = 0, list[int]()
        self._sink = Sink()
        self._server: LacunaServer = create_server(FakeEngine(replies=[Reply("a + b")]))
        self._server.protocol.set_writer(self._sink)
        self._loop.run_until_complete(self._take(b"\n".join(map(_body, HANDSHAKE))))

    async def _take(self, data: bytes) -> None:
        for body in data.split(b"\n"):
            self._server.protocol.handle_frame(self._numbered(body))
        for _ in range(_TURNS_PER_INPUT):
            await asyncio.sleep(0)

    def _numbered(self, body: bytes) -> bytes:
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            return body
        if isinstance(message["id"], bool) or not isinstance(message["id"], int | str):
            return body
        number = _FIRST_ID + len(self._asked)
        self._asked.append(number)
        return _body({**message, "id": number})


def _body(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def _request(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _note(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


HANDSHAKE = (
    _request("initialize", {"processId": None, "capabilities": {"experimental": {"lacuna": {"drafts": True}}}}),
    _note("initialized", {}),
    _note(
        "textDocument/didOpen",
        {"textDocument": {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}},
    ),
)
LSP_SEEDS = tuple(
    _body(message)
    for message in (
        _request("textDocument/inlineCompletion", {**_PLACE, "context": {"triggerKind": 1}}),
        _request("textDocument/completion", {**_PLACE, "context": {"triggerKind": 1}}),
        _request("completionItem/resolve", {"label": "a", "data": {"uri": URI}}),
        _request(
            "textDocument/codeAction",
            {"textDocument": {"uri": URI}, "range": _SPAN, "context": {"diagnostics": [], "only": ["refactor"]}},
        ),
        _request(
            "codeAction/resolve",
            {
                "title": "x",
                "data": {
                    **{"uri": URI, "version": 1, "start": 0, "end": 9},
                    **{"action": "simplify", "instruction": "x", "mark": 1},
                },
            },
        ),
        _request("workspace/executeCommand", {"command": "lacuna.status", "arguments": []}),
        _request(
            "workspace/executeCommand",
            {"command": "lacuna.rewrite", "arguments": [{"uri": URI, "range": _SPAN, "instruction": "shorter"}]},
        ),
        _request(
            "lacuna/rewrite",
            {"textDocument": {"uri": URI, "version": 1}, "range": _SPAN, "instruction": "shorter", "seed": 2},
        ),
        _request("lacuna/fillHoles", {"textDocument": {"uri": URI, "version": 1}, "ranges": [_SPAN]}),
        _note(
            "textDocument/didChange",
            {
                "textDocument": {"uri": URI, "version": 2},
                "contentChanges": [{"range": _SPAN, "text": "y = 🙂\r\n"}, {"text": "z"}],
            },
        ),
        _note(
            "workspace/didChangeConfiguration", {"settings": {"lacuna": {"enable": False, "holes": {"markers": []}}}}
        ),
        _note(
            "workspace/didChangeWorkspaceFolders",
            {"event": {"added": [{"uri": "file:///w", "name": "w"}], "removed": []}},
        ),
        _note("textDocument/didClose", {"textDocument": {"uri": URI}}),
        _note("$/cancelRequest", {"id": 1}),
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}},
    )
)
