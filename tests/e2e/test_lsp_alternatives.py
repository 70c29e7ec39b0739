"""Alternatives all the way, with a tiny model's engine behind its own socket; and those that come behind an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.core import EngineCore
from engine.models.tiny import tiny_denoiser
from engine.protocol.messages import Fill, Found
from engine.quality import Gates
from lsp_server.engine_client import EngineProcess
from lsp_server.server import create_server
from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_link import LocalLink
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import running

pytestmark = pytest.mark.asyncio


async def test_each_text_crosses_the_socket_as_it_is_found() -> None:
    with short_home() as home:
        core = EngineCore(tiny_denoiser(seed=4), threads=1, gates=Gates.open())
        async with running(home, lambda progress: core):
            engine = EngineProcess("scripted", command=["false"], env={"LACUNA_HOME": str(home)})
            found: list[Found] = []
            request = Fill("1", "python", "total = ", "", max_tokens=12, alternatives=4)
            done = await engine.submit(request, on_found=found.append, wait=True)
            assert found[0] == Found("1", done.text)
            assert len(found) > 1
            assert all(each.alternatives == done.alternatives[: len(each.alternatives)] for each in found)
            found.clear()
            await engine.submit(Fill("2", "python", "total = ", "", max_tokens=12), on_found=found.append)
            assert found == []
            await engine.close()


async def test_who_asks_gets_several_texts_of_the_model_and_who_types_the_first() -> None:
    with short_home() as home:
        core = EngineCore(tiny_denoiser(seed=4), threads=1, gates=Gates.open())
        async with running(home, lambda progress: core):
            engine = EngineProcess("scripted", command=["false"], env={"LACUNA_HOME": str(home)})
            await engine.ready()
            client = lsp.LspClient(LocalLink(create_server(engine)))
            options = {
                "inlineCompletion": {"alternatives": 8, "maxTokens": 12, "debounceMs": 0, "alternativesMs": 60_000}
            }
            await lsp.initialize(client, lsp.VSCODE, options)
            client.notify("initialized", {})
            client.open("total = ")
            (alone,) = await client.inline(0, 8, triggerKind=2)
            client.open("total = ", version=2)
            texts = [item["insertText"] for item in await client.inline(0, 8)]
            assert texts[0] == alone["insertText"]
            assert len(texts) >= 3
            assert len({text.strip() for text in texts}) == len(texts)
            assert await client.leave() == 0
            # The states of the engine, told as they came.
            client.claim_all("window/logMessage")
            client.check()


LATE = {"text": "a + b", "alternatives": ["a - b", "max(a, b)"], "found": 1, "hold": True}
INVOKED, AUTOMATIC = 1, 2
CANCELLED = -32800


@asynccontextmanager
async def answered_early(*replies: dict[str, Any]) -> AsyncIterator[lsp.LspClient]:
    """Somebody has asked, and was shown the first text at once while the engine works on two others."""
    options = {"inlineCompletion": {"debounceMs": 0, "alternativesMs": 20}}
    async with lsp.session(LATE, *replies, options=options) as client:
        client.open("total = ")
        assert await seen(client) == ["a + b"]
        assert (await client.engine())["cancelled"] == []
        yield client


async def seen(client: lsp.LspClient, trigger: int = INVOKED) -> list[str]:
    return [item["insertText"] for item in await client.inline(0, 8, triggerKind=trigger) or []]


async def one_cancelled(client: lsp.LspClient) -> None:
    """Wait until the engine's work for the first request is cancelled, a turn of the server's loop later."""
    while not (engine := await client.engine())["cancelled"]:
        pass
    assert engine["cancelled"] == [engine["requests"][0]["id"]]


async def test_late_alternatives_are_there_for_who_asks_again() -> None:
    async with answered_early() as client:
        # Neither of these asks the engine anew or stops it.
        assert await seen(client, AUTOMATIC) == ["a + b"]
        assert await seen(client) == ["a + b"]
        client.notify("test/release", {})
        while len(texts := await seen(client)) == 1:
            pass
        assert texts == ["a + b", "a - b", "max(a, b)"]
        engine = await client.engine()
        assert (len(engine["requests"]), engine["cancelled"]) == (1, [])
        status = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
        assert status["suggestions"]["shown"] == 1


async def test_an_edit_ends_what_is_made_behind_an_answer() -> None:
    async with answered_early({"text": "c"}) as client:
        client.send(lsp.change(2, "x", lsp.area((0, 8), (0, 8))))
        await one_cancelled(client)
        # Nothing of it is offered where it does not belong any more.
        client.notify("test/release", {})
        items = await client.inline(0, 9, triggerKind=AUTOMATIC)
        assert [item["insertText"] for item in items] == ["c"]


@pytest.mark.parametrize("other", ["menu elsewhere", "ghost text elsewhere", "close"])
async def test_who_waits_comes_before_what_is_made_behind_an_answer(other: str) -> None:
    async with answered_early({"text": "c"}) as client:
        client.open("x = ", "file:///w/b.py")
        if other == "menu elsewhere":
            menu = await client.request("textDocument/completion", lsp.place("file:///w/b.py", 0, 4))
            assert [item["label"] for item in menu["items"]] == ["c"]
        elif other == "ghost text elsewhere":
            assert [item["insertText"] for item in await client.inline(0, 4, "file:///w/b.py")] == ["c"]
        else:
            client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///w/a.py"}})
        await one_cancelled(client)


async def test_who_asks_in_time_gets_all_at_once() -> None:
    reply = LATE | {"hold": False}
    async with lsp.session(reply, options={"inlineCompletion": {"debounceMs": 0}}) as client:
        client.open("total = ")
        assert await seen(client) == ["a + b", "a - b", "max(a, b)"]


async def test_a_cancel_in_the_meantime_stops_the_engine() -> None:
    options = {"inlineCompletion": {"debounceMs": 0, "alternativesMs": 600_000}}
    async with lsp.session(LATE, options=options) as client:
        client.open("total = ")
        asking = client.ghost(0, 8)
        client.send(asking)
        await client.engine_asked(1)
        client.cancel(asking)
        with pytest.raises(lsp.ResponseFault) as cancelled:
            await client.answer(asking)
        assert cancelled.value.code == CANCELLED
        await one_cancelled(client)


async def test_an_editor_may_leave_while_something_is_made_behind_an_answer() -> None:
    options = {"inlineCompletion": {"debounceMs": 0, "alternativesMs": 20}}
    async with lsp.session(LATE, process=True, options=options) as client:
        client.open("total = ")
        assert await seen(client) == ["a + b"]
    # The session ends with status 0, or fails; and nothing was amiss on the way.
    assert client.log == b""
