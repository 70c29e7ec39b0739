"""Malformed messages, the end of a session, a missing engine (cases T-ROB, T-CAN-5, T-PRIV)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
NOT_INITIALIZED = -32002
CANCELLED = -32800
PARSE_ERROR = -32700


async def fault_of(client: lsp.LspClient, method: str, params: Any) -> int:
    """The error code a request is answered with."""
    with pytest.raises(lsp.ResponseFault) as fault:
        await client.request(method, params)
    return fault.value.code


@pytest.mark.parametrize(
    "params",
    [
        {"textDocument": {"uri": "file:///w/a.py"}, "position": {"line": 0, "character": 0}},
        {"textDocument": {}, "position": {"line": 0, "character": 0}, "context": {"triggerKind": 1}},
        lsp.place("file:///w/a.py", 0, -1) | {"context": {"triggerKind": 1}},
        lsp.place("file:///w/a.py", 0, 2**40) | {"context": {"triggerKind": 1}},
        {"textDocument": None, "position": None, "context": None},
        [1, 2],
        "text",
        None,
    ],
)
async def test_malformed_params_are_answered(params: Any) -> None:
    async with lsp.session() as client:
        client.open("x = 1")
        assert await fault_of(client, "textDocument/inlineCompletion", params) == INVALID_PARAMS


async def test_a_nested_jsonrpc_key_is_just_data() -> None:
    async with lsp.session() as client:
        params = {"command": "lacuna.status", "arguments": [{"jsonrpc": "2.0", "id": 1, "method": "x"}]}
        assert (await client.request("workspace/executeCommand", params))["state"] == "ready"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 900, "method": "shutdown"}, INVALID_REQUEST),
        ({"jsonrpc": "1.0", "id": 900, "method": "shutdown"}, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 900, "method": "foo/bar", "params": {}}, METHOD_NOT_FOUND),
        ({"jsonrpc": "2.0", "id": 900, "method": "$/foo", "params": {}}, METHOD_NOT_FOUND),
        ({"jsonrpc": "2.0", "id": 900, "method": 5}, METHOD_NOT_FOUND),
        ({"jsonrpc": "2.0", "id": 900, "method": "initialize", "params": {"capabilities": {}}}, INVALID_REQUEST),
    ],
)
async def test_requests_that_make_no_sense_are_answered(message: dict[str, Any], code: int) -> None:
    async with lsp.session() as client:
        client.call("reserve the id", None, 900)
        client.send(message)
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer({"id": 900})
        assert fault.value.code == code


async def test_an_id_in_use_is_refused_and_the_first_is_still_answered() -> None:
    async with lsp.session({"text": "a", "hold": True}) as client:
        client.open("total = ")
        ghost = client.ghost(0, 8)
        client.send(ghost)
        await client.engine_asked(1)
        client.cancel(ghost)
        with pytest.raises(lsp.ResponseFault):
            await client.answer(ghost)


async def test_frames_that_are_no_message_get_an_error_without_an_id() -> None:
    async with lsp.session() as client:
        for body in (b"{broken", b"[]", b"42", b'"text"', b"\xff\xfe"):
            client.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        client.notify("$/unknown", {})
        client.notify("foo/unknown", None)
        assert (await client.request("workspace/executeCommand", {"command": "lacuna.status"}))["jobs"] == 0
        assert client.null_id_errors == [
            PARSE_ERROR,
            INVALID_REQUEST,
            INVALID_REQUEST,
            INVALID_REQUEST,
            PARSE_ERROR,
        ]


async def test_responses_nobody_asked_for_are_ignored() -> None:
    async with lsp.session() as client:
        client.send({"jsonrpc": "2.0", "id": 77, "result": 1}, {"jsonrpc": "2.0", "id": "x", "error": {}})
        assert await client.inline(0, 0) is None


@pytest.mark.parametrize("change", [{"range": 1}, {"text": None}, {"text": 7}, {"text": ["x"]}, None])
async def test_a_change_that_cannot_be_read_leaves_no_wrong_text_behind(change: Any) -> None:
    async with lsp.session({"text": "a"}) as client:
        client.open("total = ")
        broken = {"textDocument": {"uri": "file:///w/a.py", "version": 2}, "contentChanges": [change]}
        client.notify("textDocument/didChange", broken)
        assert await client.inline(0, 8) is None
        assert "a.py" in (await client.expect("window/showMessage"))["message"]
        client.open("total = ", version=3)
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
    assert b"didChange" in client.log


async def test_nothing_is_served_before_initialize() -> None:
    async with lsp.connection() as client:
        assert await fault_of(client, "workspace/executeCommand", {"command": "lacuna.status"}) == NOT_INITIALIZED
        client.open("x = 1")
        await lsp.initialize(client, lsp.VSCODE)
        assert await client.inline(0, 0) is None
        assert await client.leave() == 0
        client.check()


async def test_shutdown_answers_what_runs_and_refuses_what_comes() -> None:
    async with lsp.connection({"text": "a", "hold": True}) as client:
        await lsp.initialize(client, lsp.VSCODE)
        client.open("total = ")
        ghost = client.ghost(0, 8)
        client.send(ghost)
        await client.engine_asked(1)
        assert await client.request("shutdown") is None
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(ghost)
        assert fault.value.code == CANCELLED
        assert await fault_of(client, "shutdown", None) == INVALID_REQUEST
        assert await fault_of(client, "textDocument/codeAction", {}) == INVALID_REQUEST
        client.notify("exit")
        assert await client.wait() == 0
        client.check()


async def test_shutdown_and_exit_in_one_write_still_answer_every_id() -> None:
    async with lsp.connection({"text": "a", "hold": True}, process=True) as client:
        await lsp.initialize(client, lsp.VSCODE)
        client.open("total = ")
        ghost = client.ghost(0, 8)
        client.send(ghost, client.call("shutdown", None), lsp.note("exit"))
        assert await client.wait() == 0
        client.check()


async def test_exit_without_shutdown_is_1() -> None:
    async with lsp.connection(process=True) as client:
        await lsp.initialize(client, lsp.VSCODE)
        client.notify("exit")
        assert await client.wait() == 1


async def test_the_end_of_stdin_ends_the_server_even_with_a_job_running() -> None:
    async with lsp.connection({"text": "a", "hold": True}, process=True) as client:
        await lsp.initialize(client, lsp.VSCODE)
        client.open("total = ")
        ghost = client.ghost(0, 8)
        client.send(ghost)
        await client.engine_asked(1)
        client.link.end_input()
        assert await asyncio.wait_for(client.wait(), 5) == 1
        client.check()


async def test_the_end_of_stdin_inside_a_message_ends_the_server() -> None:
    async with lsp.connection(process=True) as client:
        client.send_bytes(b"Content-Length: 100\r\n\r\n{")
        client.link.end_input()
        assert await asyncio.wait_for(client.wait(), 60) == 1


async def test_the_death_of_the_editor_ends_the_server() -> None:
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    async with lsp.connection(process=True) as client:
        params: dict[str, Any] = {"processId": editor.pid, "rootUri": None, "capabilities": {}}
        await client.request("initialize", params)
        editor.kill()
        editor.communicate()
        # Its pipe to the server stays open in this very process: only the process id tells.
        assert await asyncio.wait_for(client.wait(), 60) == 1


@pytest.mark.parametrize("state", ["starting", "loading", "failed"])
async def test_an_engine_that_is_not_ready_is_not_waited_for(state: str) -> None:
    async with lsp.session({"text": "a"}, state=state) as client:
        client.open("total = ")
        assert [await client.inline(0, 8) for _ in range(5)] == [None] * 5
        menu = await client.request("textDocument/completion", lsp.place("file:///w/a.py", 0, 8))
        assert menu == {"isIncomplete": True, "items": []}
        assert (await client.engine())["requests"] == []


async def test_one_message_per_state_and_recovery_by_itself() -> None:
    async with lsp.session({"text": "a"}, state="failed") as client:
        client.open("total = ")
        failed = {"state": "failed", "message": "no model; run `lacuna models pull`"}
        client.notify("test/state", failed)
        client.notify("test/state", failed)
        for _ in range(3):
            assert await client.inline(0, 8) is None
        (shown,) = client.claim_all("window/showMessage")
        assert shown["type"] == 3
        assert "lacuna models pull" in shown["message"]
        assert client.claim_all("window/logMessage") == []
        client.notify("test/state", {"state": "ready", "message": "ready"})
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
        assert len(client.claim_all("window/logMessage")) == 1


async def test_the_engine_is_started_by_the_session_and_again_when_it_left() -> None:
    async with lsp.session({"text": "a"}, state="off") as client:
        client.open("total = ")
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
        client.notify("test/state", {"state": "off", "message": "idle"})
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
        assert (await client.engine())["starts"] == 2
        client.claim_all("window/logMessage")


@pytest.mark.parametrize("kind", ["internal", "out_of_memory", "window_exceeded"])
async def test_an_engine_failure_is_null_and_told_once(kind: str) -> None:
    async with lsp.session({"error": [kind, "it went wrong.", "Do this."]}) as client:
        client.open("total = ")
        assert [await client.inline(0, 8) for _ in range(3)] == [None] * 3
        told = client.claim_all("window/logMessage") + client.claim_all("window/showMessage")
        assert [message["message"] for message in told] == ["Lacuna: it went wrong. Do this."]


async def test_document_text_stays_out_of_the_log() -> None:
    reply = {"text": "SECRET_MARK_42", "drafts": ["SECRET_MARK_42"]}
    async with lsp.session(reply, options={"drafts": True}, process=True) as client:
        client.open("key = 'SECRET_MARK_42'\nother = ")
        assert await client.inline(1, 8)
        await client.expect("lacuna/draft")
        broken = lsp.place("file:///w/a.py", 0, 0) | {"context": "SECRET_MARK_42"}
        assert await fault_of(client, "textDocument/inlineCompletion", broken) == INVALID_PARAMS
        client.notify("textDocument/didChange", {"textDocument": {}, "contentChanges": ["SECRET_MARK_42"]})
        body = json.dumps({"text": "SECRET_MARK_42"}).encode()[:-1]
        client.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await client.inline(9, 0, "file:///never.py")
    assert b"didChange" in client.log
    assert b"SECRET_MARK_42" not in client.log


@pytest.mark.parametrize("name", [".env", ".env.local", "id_rsa", "x.pem", ".dev.vars", "secrets.yml"])
async def test_secrets_never_reach_the_engine(name: str) -> None:
    uri = f"file:///w/{name}"
    async with lsp.session({"text": "a"}) as client:
        client.open("TOKEN=", uri, "plaintext")
        assert await client.inline(0, 6, uri) is None
        menu = await client.request("textDocument/completion", lsp.place(uri, 0, 6))
        assert menu["items"] == []
        selected = {"textDocument": {"uri": uri}, "range": lsp.area((0, 0), (0, 6)), "context": {"diagnostics": []}}
        assert await client.request("textDocument/codeAction", selected) == []
        argument = {"uri": uri, "range": lsp.area((0, 0), (0, 6)), "instruction": "tidy"}
        command = {"command": "lacuna.rewrite", "arguments": [argument]}
        assert await client.request("workspace/executeCommand", command) is None
        assert "secret" in (await client.expect("window/showMessage"))["message"]
        assert (await client.engine())["requests"] == []


async def test_tcp_serves_one_editor_on_loopback() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lsp_server", "--tcp", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    host, _, port = (await process.stderr.readline()).decode().strip().rpartition(" ")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    params: dict[str, Any] = {"processId": os.getpid(), "rootUri": None, "capabilities": {}}
    writer.write(lsp.frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
    answer = await lsp.read_frame(reader)
    assert answer is not None
    assert answer["result"]["serverInfo"]["name"] == "lacuna"
    writer.write(lsp.frame({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}) + lsp.frame(lsp.note("exit")))
    assert await lsp.read_frame(reader) == {"jsonrpc": "2.0", "id": 2, "result": None}
    assert await asyncio.wait_for(process.wait(), 10) == 0
    writer.close()
    await writer.wait_closed()


async def test_tcp_never_listens_beyond_this_machine() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lsp_server", "--tcp", "0.0.0.0:0", stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"ssh -L" in said
