"""Alternatives all the way: an editor asks, the engine's own socket and loop, a tiny model, several different texts."""

from __future__ import annotations

import pytest

from engine.core import EngineCore
from engine.models.tiny import tiny_denoiser
from lsp_server.engine_client import EngineProcess
from lsp_server.server import create_server
from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_link import LocalLink
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import running

pytestmark = pytest.mark.asyncio


async def test_who_asks_gets_several_texts_of_the_model_and_who_types_the_first() -> None:
    with short_home() as home:
        core = EngineCore(tiny_denoiser(seed=4), threads=1)
        async with running(home, lambda progress: core):
            engine = EngineProcess("scripted", command=["false"], env={"LACUNA_HOME": str(home)})
            await engine.ready()
            client = lsp.LspClient(LocalLink(create_server(engine)))
            options = {"inlineCompletion": {"alternatives": 8, "maxTokens": 12, "debounceMs": 0}}
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
