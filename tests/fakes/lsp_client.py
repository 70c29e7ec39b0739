"""A strict editor: raw JSON-RPC frames, independent of pygls, to a server in this process or in one of its own.

Fails on a request id with two responses or none, on a response nobody asked for, and on any message from the server
that the test did not claim. `async with session(...)` does the handshake, the shutdown and these checks.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.fakes.looks import awaited
from tests.fakes.lsp_link import Link, LocalLink, ProcessLink
from tests.fakes.lsp_messages import area, change, frame, note, place, read_frame
from tests.fakes.scripted_server import scripted_server

__all__ = [
    "VSCODE",
    "LspClient",
    "ResponseFault",
    "area",
    "change",
    "connection",
    "frame",
    "initialize",
    "note",
    "place",
    "read_frame",
    "session",
]

PATIENCE_S = 20.0

# What VS Code says of itself, as far as this server looks at it (vscode-languageclient 10.1).
VSCODE: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "codeAction": {
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
            "tagSupport": {"valueSet": [1]},
        },
        "completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [1, 2]}}},
        "inlineCompletion": {"dynamicRegistration": True},
    },
    "workspace": {"workspaceEdit": {"documentChanges": True}},
}


class ResponseFault(Exception):  # noqa: N818 (named as LSP names it)
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class LspClient:
    """One server and the conversation with it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        # What to answer the server's own requests with; a ResponseFault refuses.
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.violations: list[str] = []
        self.null_id_errors: list[int] = []
        self.unclaimed: list[dict[str, Any]] = []
        self.log = b""
        self._pending: dict[int | str, asyncio.Future[Any]] = {}
        self._answered: set[int | str] = set()
        self._next_id = 0
        self._arrived = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    # Sending

    def send(self, *messages: dict[str, Any]) -> None:
        """Several messages in one write."""
        self.send_bytes(b"".join(frame(message) for message in messages))

    def send_bytes(self, data: bytes) -> None:
        self.link.send(data)

    def call(self, method: str, params: Any, message_id: int | str | None = None) -> dict[str, Any]:
        """A request message whose answer is awaited with `answer`."""
        if message_id is None:
            self._next_id += 1
            message_id = self._next_id
        self._pending[message_id] = asyncio.get_running_loop().create_future()
        return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}

    async def answer(self, message: dict[str, Any], patience_s: float = PATIENCE_S) -> Any:
        """The result of a request made by `call`. Raises ResponseFault."""
        return await awaited(self._pending[message["id"]], patience_s)

    async def request(self, method: str, params: Any = None) -> Any:
        """Ask and wait. Raises ResponseFault."""
        message = self.call(method, params)
        self.send(message)
        return await self.answer(message)

    def notify(self, method: str, params: Any = None) -> None:
        self.send(note(method, params))

    def cancel(self, message: dict[str, Any]) -> None:
        self.notify("$/cancelRequest", {"id": message["id"]})

    # Hearing

    async def expect(self, method: str) -> Any:
        """Claim the next message of `method` from the server; its params."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for message in self.unclaimed:
                    if message["method"] == method:
                        self.unclaimed.remove(message)
                        return message.get("params")
                self._arrived.clear()
                await self._arrived.wait()

    def claim_all(self, method: str) -> list[Any]:
        """Claim every message of `method` that has come so far; their params."""
        claimed = [message for message in self.unclaimed if message["method"] == method]
        self.unclaimed = [message for message in self.unclaimed if message["method"] != method]
        return [message.get("params") for message in claimed]

    async def _read(self) -> None:
        while (message := await read_frame(self.link.received)) is not None:
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._hear_response(message)
        elif "id" in message and message["method"] in self.answers:
            result = self.answers[message["method"]](message.get("params"))
            refused = isinstance(result, ResponseFault)
            outcome = {"error": {"code": result.code, "message": result.message}} if refused else {"result": result}
            self.send({"jsonrpc": "2.0", "id": message["id"]} | outcome)
        else:
            self.unclaimed.append(message)
            self._arrived.set()

    def _hear_response(self, message: dict[str, Any]) -> None:
        message_id = message.get("id")
        if ("result" in message) == ("error" in message):
            self.violations.append(f"not exactly one of result and error: {message}")
        if message_id is None:
            self.null_id_errors.append(message["error"]["code"])
        elif message_id in self._answered or message_id not in self._pending:
            self.violations.append(f"a response nobody waits for: {message}")
        else:
            self._answered.add(message_id)
            self._resolve(self._pending[message_id], message)

    @staticmethod
    def _resolve(future: asyncio.Future[Any], message: dict[str, Any]) -> None:
        if "error" in message:
            future.set_exception(ResponseFault(message["error"]["code"], message["error"]["message"]))
            # A test may look only at some of the answers.
            future.exception()
        else:
            future.set_result(message["result"])

    # Documents

    def open(self, text: str, uri: str = "file:///w/a.py", language: str = "python", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def ghost(self, line: int, character: int, uri: str = "file:///w/a.py", **context: Any) -> dict[str, Any]:
        """An inline completion request, not yet sent."""
        return self.call(
            "textDocument/inlineCompletion",
            place(uri, line, character) | {"context": {"triggerKind": 1} | context},
        )

    async def inline(self, line: int, character: int, uri: str = "file:///w/a.py", **context: Any) -> Any:
        """The items of an inline completion request, or what came instead of a list."""
        message = self.ghost(line, character, uri, **context)
        self.send(message)
        result = await self.answer(message)
        return result["items"] if isinstance(result, dict) else result

    async def engine(self) -> dict[str, Any]:
        """What the scripted engine has seen."""
        result: dict[str, Any] = await self.request("test/engine")
        return result

    async def engine_asked(self, count: int) -> dict[str, Any]:
        """Wait until the scripted engine has seen `count` requests."""
        async with asyncio.timeout(PATIENCE_S):
            while len((seen := await self.engine())["requests"]) < count:
                pass
        return seen

    # Life cycle

    async def wait(self) -> int:
        """The exit code; also reads what is left on its way."""
        async with asyncio.timeout(PATIENCE_S):
            code = await self.link.wait()
            self.log = await self.link.log()
            await self._reading
        return code

    async def leave(self) -> int:
        """Shutdown, exit, and the exit code."""
        await self.request("shutdown")
        self.notify("exit")
        return await self.wait()

    def check(self) -> None:
        """Raise AssertionError if the conversation broke a rule."""
        silent = [message_id for message_id in self._pending if message_id not in self._answered]
        assert not self.violations, self.violations
        assert not silent, f"requests without a response: {silent}"
        assert not self.unclaimed, f"messages nobody claimed: {self.unclaimed}"


async def start_process(script: dict[str, Any], module: str = "tests.fakes.scripted_server") -> ProcessLink:
    """A server in a process of its own, that follows `script`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, json.dumps(script)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 26,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    return ProcessLink(process)


@asynccontextmanager
async def connection(*replies: dict[str, Any], process: bool = False, **script: Any) -> AsyncIterator[LspClient]:
    """A client of the scripted server, before `initialize`; the server is gone afterwards, whatever happens.

    `process` gives the server a process of its own, for tests of its pipes, exit code and imports.
    """
    whole = {"replies": list(replies) or [{}]} | script
    client = LspClient(await start_process(whole) if process else LocalLink(scripted_server(whole)))
    try:
        yield client
    finally:
        client.link.kill()
        await client.wait()
        # pytest shows this with a failure: the server's side of the story.
        sys.stderr.write(client.log.decode(errors="replace"))


@asynccontextmanager
async def session(
    *replies: dict[str, Any],
    capabilities: dict[str, Any] | None = None,
    options: Any = None,
    folders: Sequence[str] | None = None,
    answers: Mapping[str, Callable[[Any], Any]] | None = None,
    **script: Any,
) -> AsyncIterator[LspClient]:
    """An initialized session with a scripted server; ends with shutdown, exit code 0 and every check."""
    async with connection(*replies, **script) as client:
        client.answers = dict(answers or {})
        await initialize(client, VSCODE if capabilities is None else capabilities, options, folders)
        client.notify("initialized", {})
        yield client
        assert await client.leave() == 0, client.log
        client.check()


async def initialize(
    client: LspClient, capabilities: dict[str, Any], options: Any = None, folders: Sequence[str] | None = None
) -> dict[str, Any]:
    """The capabilities the server answers with."""
    params = {
        "processId": os.getpid(),
        "rootUri": None,
        "capabilities": capabilities,
        "initializationOptions": options,
        "workspaceFolders": [{"uri": uri, "name": uri} for uri in folders] if folders else None,
    }
    result = await client.request("initialize", params)
    capabilities_of_server: dict[str, Any] = result["capabilities"]
    return capabilities_of_server
