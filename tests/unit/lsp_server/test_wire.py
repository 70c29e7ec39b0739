"""Whatever comes, each request id gets exactly one response, and nothing kills the server."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.frames import to_frame
from lsp_server.server import LacunaServer, create_server
from tests.fakes.fake_engine import FakeEngine, Reply

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
KEYS = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "textDocument", "uri", "position", "range", "context", "type_name"]
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)
METHODS = st.sampled_from(
    [
        types.INITIALIZE,
        types.INITIALIZED,
        types.SHUTDOWN,
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_INLINE_COMPLETION,
        types.TEXT_DOCUMENT_COMPLETION,
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CODE_ACTION_RESOLVE,
        types.WORKSPACE_EXECUTE_COMMAND,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        types.CANCEL_REQUEST,
        "foo/bar",
        "$/foo",
    ]
)
URI = "file:///a.py"
GOOD_GHOST = {
    "textDocument": {"uri": URI},
    "position": {"line": 0, "character": 8},
    "context": {"triggerKind": 1},
}
PARAMS = JSON | st.just(GOOD_GHOST) | st.builds(lambda number: {"id": number}, st.integers(0, 9))
MESSAGES = st.fixed_dictionaries(
    {}, optional={"jsonrpc": st.just("2.0") | JSON, "method": METHODS | JSON, "params": PARAMS, "result": JSON}
)


class Sink:
    """Collects what the server sends."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        """Nothing is kept open."""


async def initialized_server(sink: Sink) -> LacunaServer:
    server = create_server(FakeEngine(replies=[Reply("a + b")]))
    server.protocol.set_writer(sink)
    document = {"uri": URI, "languageId": "python", "version": 1, "text": "total = "}
    for message in (
        {
            "jsonrpc": "2.0",
            "id": "first",
            "method": types.INITIALIZE,
            "params": {"capabilities": {}, "processId": None},
        },
        {"jsonrpc": "2.0", "method": types.INITIALIZED, "params": {}},
        {"jsonrpc": "2.0", "method": types.TEXT_DOCUMENT_DID_OPEN, "params": {"textDocument": document}},
    ):
        server.protocol.handle_frame(json.dumps(message).encode())
    return server


async def responses_to(messages: list[Any]) -> Counter[Any]:
    """How many responses each id got."""
    sink = Sink()
    server = await initialized_server(sink)
    for message in messages:
        server.protocol.handle_frame(json.dumps(message).encode())
    await server.protocol.drain(5)
    return Counter(message.get("id") for message in sink.sent if "method" not in message)


@settings(max_examples=100)
@given(st.lists(MESSAGES | JSON, max_size=6), st.booleans())
def test_each_id_gets_exactly_one_response_whatever_comes(messages: list[Any], numbered: bool) -> None:
    expected: Counter[Any] = Counter({"first": 1})
    for number, message in enumerate(messages):
        if isinstance(message, dict) and numbered and "result" not in message:
            message["id"] = number
            if "method" in message or message.get("jsonrpc") != "2.0":
                expected[number] = 1
    counted = asyncio.run(responses_to(messages))
    del counted[None]
    assert {key: counted[key] for key in expected} == dict(expected)


def test_a_result_that_is_no_json_is_an_internal_error_not_silence() -> None:
    async def run() -> list[dict[str, Any]]:
        sink = Sink()
        server = await initialized_server(sink)
        server.feature("test/odd")(lambda params: {1, 2})
        server.protocol.handle_frame(b'{"jsonrpc": "2.0", "id": 7, "method": "test/odd"}')
        return [message for message in sink.sent if message.get("id") == 7]

    (response,) = asyncio.run(run())
    assert response["error"]["code"] == -32603


def test_a_client_that_is_gone_ends_the_session_and_raises_nothing() -> None:
    class Closed(Sink):
        def write(self, data: bytes) -> None:
            raise BrokenPipeError

    async def run() -> list[int]:
        server = await initialized_server(Sink())
        codes: list[int] = []
        server.protocol.on_exit = codes.append
        server.protocol.set_writer(Closed())
        for number in range(3):
            message = {"jsonrpc": "2.0", "id": number, "method": "foo/bar"}
            server.protocol.handle_frame(json.dumps(message).encode())
        return codes

    assert asyncio.run(run()) == [1]


def test_frames_carry_bytes_not_characters() -> None:
    assert to_frame('"é"') == b'Content-Length: 4\r\n\r\n"\xc3\xa9"'
