"""A cancel's way from the editor through server and socket into the engine's loop, to a scripted core (T-CAN-1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lsp_server.engine_client import EngineProcess
from lsp_server.server import create_server
from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_actions import apply, rewrite_call
from tests.fakes.lsp_link import LocalLink
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import running
from tests.fakes.scripted_core import ScriptedCore

pytestmark = pytest.mark.asyncio

CANCELLED = -32800
STEP_S = 0.4
CODE = "total = a + b\n"
WHOLE = lsp.area((0, 0), (0, 13))


@asynccontextmanager
async def editor_and_core() -> AsyncIterator[tuple[lsp.LspClient, ScriptedCore]]:
    """An editor whose server is connected to a real service around a scripted core, and that core."""
    with short_home() as home:
        async with running(home) as service:
            engine = EngineProcess("scripted", command=["true"], env={"LACUNA_HOME": str(home)})
            client = lsp.LspClient(LocalLink(create_server(engine)))
            try:
                await lsp.initialize(client, lsp.VSCODE)
                client.notify("initialized", {})
                client.open(CODE)
                await engine.ready()
                yield client, service.core
                assert await client.leave() == 0
                # The engine's states are told in the log.
                assert all("Lacuna: " in line["message"] for line in client.claim_all("window/logMessage"))
                client.check()
            finally:
                client.link.kill()
                await client.wait()
                await engine.close()


def endless() -> dict[str, Any]:
    return rewrite_call(WHOLE, f"steps=0 delay={STEP_S}") | {"workDoneToken": "t"}


@pytest.mark.parametrize("by", ["$/cancelRequest", "window/workDoneProgress/cancel"])
async def test_a_cancel_is_answered_within_a_step_and_ends_the_work_after_it(by: str) -> None:
    async with editor_and_core() as (client, core):
        asked = client.call("workspace/executeCommand", endless())
        client.send(asked)
        while (await client.expect("$/progress"))["value"]["kind"] != "report":
            pass
        (first,) = core.computed
        clock = asyncio.get_running_loop().time
        before = clock()
        client.notify(by, {"id": asked["id"]} if by.startswith("$") else {"token": "t"})
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CANCELLED
        assert clock() - before < STEP_S / 2
        done = core.computed[first]
        edit = await client.request("workspace/executeCommand", rewrite_call(WHOLE, "steps=2 text=sum((a,b))"))
        assert apply(CODE, edit) == "sum((a,b))\n"
        assert core.abandoned == [first]
        # The step that ran when the cancel came is the last.
        assert core.computed[first] <= done + 1
        client.claim_all("$/progress")
