"""Long files and many documents cost little and leave nothing behind (cases T-ROB-4, T-ROB-5)."""

from __future__ import annotations

import gc
import time

import pytest

from lsp_server.document import Document
from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

KEYS = 50


async def test_a_key_in_a_long_file_costs_less_than_five_milliseconds() -> None:
    async with lsp.session({"text": "1"}) as client:
        client.open("value = 1\n" * 20_000)
        client.send(lsp.change(2, "\n", lsp.area((10_000, 0), (10_000, 0))))
        await client.engine()
        # Processor time, so that a busy machine does not fail the test; the client's share is counted too.
        began = time.process_time()
        for column in range(KEYS):
            client.send(lsp.change(3 + column, "x", lsp.area((10_000, column), (10_000, column))))
        # An answer means that all before it has been handled.
        await client.request("workspace/executeCommand", {"command": "lacuna.status"})
        assert (time.process_time() - began) / KEYS < 0.005
        assert (await client.inline(10_000, KEYS))[0]["range"]["start"] == {"line": 10_000, "character": KEYS}


async def test_closed_documents_leave_nothing_behind() -> None:
    async with lsp.session({"text": "a + b"}) as client:
        for number in range(200):
            uri = f"untitled:closed-{number}"
            client.open("total = ", uri)
            assert await client.inline(0, 8, uri)
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        status = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
        assert (status["documents"], status["jobs"]) == (0, 0)
        gc.collect()
        left = [item for item in gc.get_objects() if type(item) is Document and item.uri.startswith("untitled:closed-")]
        assert len(left) <= 1
