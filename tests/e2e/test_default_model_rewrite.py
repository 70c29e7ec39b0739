"""`lacuna/rewrite` with the default model: what a client sees from the first key to the text, and another text."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_client import LspClient
from tests.fakes.lsp_link import ProcessLink

pytestmark = [pytest.mark.model, pytest.mark.asyncio]

LOAD_LIMIT_S = 240.0
URI = "file:///w/mean.py"
CODE = """def mean(values):
    total = 0
    for value in values:
        total = total + value
    return total / len(values)
"""
WHOLE = lsp.area((0, 0), (5, 0))
ASKS = lsp.VSCODE | {"experimental": {"lacuna": {"drafts": True, "status": True}}}


@pytest.fixture
def environment(model_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An engine of this test's own on the shared models; stopped afterwards."""
    monkeypatch.setenv("LACUNA_HOME", str(model_home))
    yield model_home
    stop = [sys.executable, "-m", "engine.cli.main", "engine", "stop"]
    subprocess.run(stop, timeout=LOAD_LIMIT_S, check=False, capture_output=True)


@asynccontextmanager
async def real_server() -> AsyncIterator[LspClient]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lsp_server", "--stdio"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 26,
        env=dict(os.environ),
    )
    client = LspClient(ProcessLink(process))
    try:
        await lsp.initialize(client, ASKS)
        client.notify("initialized", {})
        yield client
        assert await client.leave() == 0
        for method in ("lacuna/status", "lacuna/draft", "$/progress", "window/showMessage", "window/logMessage"):
            client.claim_all(method)
        client.check()
    finally:
        client.link.kill()
        await client.wait()


async def rewritten(client: LspClient, seed: int, token: str) -> str | None:
    """The new text, None where there was nothing to change."""
    params = {"textDocument": {"uri": URI, "version": 1}, "range": WHOLE, "seed": seed, "workDoneToken": token}
    message = client.call("lacuna/rewrite", params | {"instruction": "Return None when values is empty."})
    client.send(message)
    result: dict[str, Any] | None = await client.answer(message, LOAD_LIMIT_S)
    return None if result is None else str(result["newText"])


async def test_a_rewrite_is_seen_to_settle_and_a_seed_gives_another(environment: Path) -> None:
    async with real_server() as client:
        client.open(CODE, uri=URI)
        first = await rewritten(client, 0, "first")
        statuses = [status["state"] for status in client.claim_all("lacuna/status")]
        assert statuses[0] == "idle"
        assert "loading" in statuses
        assert "ready" in statuses or "busy" in statuses
        drafts = client.claim_all("lacuna/draft")
        assert drafts
        assert {draft["token"] for draft in drafts} == {"first"}
        assert all(0 <= draft["settled"] <= len(draft["text"]) for draft in drafts)
        assert not any("```" in draft["text"] for draft in drafts)
        assert first not in (None, CODE)
        compile(str(first), "mean.py", "exec")
        assert await rewritten(client, 0, "again") == first
        others = [await rewritten(client, seed, f"seed {seed}") for seed in (1, 2, 3)]
        assert first not in others
        assert set(others) != {None}
