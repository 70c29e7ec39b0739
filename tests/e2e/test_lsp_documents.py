"""Documents without a file, without text and without an end: cases T-ROB-1, T-ROB-2 and T-ROB-5."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import psutil
import pytest
from lsprotocol import types
from pygls.protocol import default_converter

from lsp_server.clock import SystemClock
from lsp_server.document import Document
from lsp_server.features import inline_completion, notebook_sync, sync
from lsp_server.session import Session
from tests.fakes import lsp_client as lsp
from tests.fakes.fake_editor import FakeEditor
from tests.fakes.fake_engine import FakeEngine, Reply
from tests.fakes.lsp_link import ProcessLink

EDGES = [
    ("x", (0, 0)),
    ("x = 1", (0, 0)),
    ("x = ", (0, 4)),
    ("x = 1\n", (1, 0)),
    ("x = 1\n\n", (2, 0)),
    ("x = 1\n    ", (1, 4)),
    ("\nx = 1", (0, 0)),
    ("\nx = 1\n", (2, 0)),
]


@pytest.mark.parametrize(("text", "cursor"), EDGES)
@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.asyncio
async def test_a_cursor_at_the_edge_of_a_document_is_answered(text: str, cursor: tuple[int, int], kind: int) -> None:
    async with lsp.session({"text": "y = 2"}) as client:
        client.open(text)
        items = await client.inline(*cursor, triggerKind=kind)
        assert items is None or items[0]["insertText"].endswith("2")
        request = (await client.engine())["requests"][-1]
        assert request["prefix"] + request["suffix"] == text


UNUSUAL = [
    "untitled:Untitled-1",
    "file:///",
    "vscode-notebook-cell:/x.ipynb#W0",
    "x",
    "",
    "git:/w/a.py?{}",
    "file:a b",
    "file://[a/b.py",
]


@pytest.mark.parametrize("uri", UNUSUAL)
@pytest.mark.asyncio
async def test_a_document_never_opened_is_answered_with_nothing(uri: str) -> None:
    async with lsp.session({"text": "1"}) as client:
        assert await client.inline(0, 0, uri) is None
        menu = await client.request("textDocument/completion", lsp.place(uri, 0, 0))
        assert (menu or {"items": []})["items"] == []
        action = {"textDocument": {"uri": uri}, "range": lsp.area((0, 0), (0, 0)), "context": {"diagnostics": []}}
        assert not await client.request("textDocument/codeAction", action)
        client.send(lsp.change(2, "x", uri=uri))
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert (await client.engine())["requests"] == []


@pytest.mark.parametrize("uri", [*UNUSUAL[:5], "vscode-remote://ssh-remote%2Bhost/w/a.py", *UNUSUAL[6:]])
@pytest.mark.asyncio
async def test_once_opened_it_completes_as_any_other(uri: str) -> None:
    async with lsp.session({"text": "1"}, folders=["file:///w"]) as client:
        client.open("x = ", uri)
        assert (await client.inline(0, 4, uri))[0]["insertText"] == "1"


CONVERTER = default_converter()  # type: ignore[no-untyped-call]
WARM, ALL = 100, 1000
# Text enough that keeping it would be seen, and short enough to be read quickly.
LONG_TEXT = ("# " + "value " * 30 + "\n") * 100 + "total = "
BOOK = {"uri": "file:///w/n.ipynb", "notebookType": "jupyter-notebook", "version": 1}


def from_wire(method: str, params: dict[str, Any]) -> Any:
    """The params of a method as its handler gets them."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return CONVERTER.structure(message, types.METHOD_TO_TYPES[method][0]).params


def opened(number: int) -> Any:
    text = f"import math\nvalue_{number} = helper_name(shared_name)\ntotal = "
    item = {"uri": f"file:///w/closed_{number}.py", "languageId": "python", "version": 1, "text": text}
    return from_wire("textDocument/didOpen", {"textDocument": item})


def notebook_opened(number: int) -> Any:
    cells = [{"kind": 2, "document": f"cell:{number}-{each}"} for each in "ab"]
    texts = [{"uri": each["document"], "languageId": "python", "version": 1, "text": "total = "} for each in cells]
    book = {"notebookDocument": BOOK | {"cells": cells}, "cellTextDocuments": texts}
    return from_wire("notebookDocument/didOpen", book)


async def live_one_document(session: Session, engine: FakeEngine, number: int) -> None:
    """Open, complete and close a document and a notebook, with an older document still open beside them."""
    params = opened(number)
    sync.did_open(session, params)
    notebook_sync.did_open(session, notebook_opened(number))
    for uri, line in ((params.text_document.uri, 2), (f"cell:{number}-b", 0)):
        place = lsp.place(uri, line, 8) | {"context": {"triggerKind": 1}}
        answer = inline_completion.inline_completion(session, from_wire("textDocument/inlineCompletion", place))
        assert answer is not None
        assert not isinstance(answer, types.InlineCompletionList)
        assert await answer is not None
    close = from_wire("textDocument/didClose", {"textDocument": {"uri": params.text_document.uri}})
    sync.did_close(session, close)
    closed = {"notebookDocument": {"uri": BOOK["uri"]}, "cellTextDocuments": []}
    notebook_sync.did_close(session, from_wire("notebookDocument/didClose", closed))
    engine.requests.clear()


CONTAINERS = {f"builtins.{kind}" for kind in ("dict", "list", "set", "tuple")}


def objects() -> Counter[str]:
    """How many objects there are of each type of the server's, and of the containers that could hold any."""
    gc.collect()
    kinds = (type(item) for item in gc.get_objects())
    names = (f"{kind.__module__}.{kind.__name__}" for kind in kinds)
    return Counter(name for name in names if name.startswith("lsp_server.") or name in CONTAINERS)


@pytest.mark.asyncio
async def test_a_thousand_documents_leave_as_many_objects_as_a_hundred() -> None:
    engine = FakeEngine(replies=[Reply(text="1")])
    session = Session(engine, FakeEditor(), SystemClock())
    session.open(Document.open("file:///w/kept.py", 1, "python", "helper_name = shared_name = 1\n"))
    for number in range(WARM):
        await live_one_document(session, engine, number)
    before = objects()
    for number in range(WARM, ALL):
        await live_one_document(session, engine, number)
    grown = {name: count - before[name] for name, count in objects().items() if count - before[name] > 0}
    # Of the containers, caches of compiled patterns and such may still fill; nothing grows with the documents.
    assert {name: more for name, more in grown.items() if name.startswith("lsp_server")} == {}
    assert sum(grown.values()) < (ALL - WARM) // 10, grown
    assert session.document_count == 1


@pytest.mark.asyncio
async def test_a_thousand_documents_leave_the_process_as_large_as_before() -> None:
    async with lsp.session({"text": "1"}, process=True) as client:
        assert isinstance(client.link, ProcessLink)
        process, sizes = psutil.Process(client.link.process.pid), []
        for number in range(ALL):
            uri = f"file:///w/closed_{number}.py"
            client.open(LONG_TEXT, uri)
            assert await client.inline(100, 8, uri) is not None
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            if number in (ALL // 4, ALL - 1):
                sizes.append(process.memory_info().rss)
        # The text of these documents is 18 MB; the scripted engine keeps what it was asked, a few kB each.
        assert sizes[1] - sizes[0] < 9_000_000
