"""What a client that shows a status is told: each change once, work only when it lasts, failures with their remedy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.protocol.messages import Loading
from lsp_server.capabilities import Capabilities
from lsp_server.engine_client import EngineState
from lsp_server.session import Session
from lsp_server.status import BUSY_AFTER_S
from tests.fakes import lsp_client as lsp
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine

pytestmark = pytest.mark.asyncio

STATUS = lsp.VSCODE | {"experimental": {"lacuna": {"status": True}}}


def bench(state: EngineState = "off", *, wants: bool = True) -> tuple[Session, FakeEngine, FakeEditor, FakeClock]:
    engine, editor, clock = FakeEngine(state=state), FakeEditor(), FakeClock()
    session = Session(engine, editor, clock)
    session.begin(Capabilities(wants_status=wants), None)
    return session, engine, editor, clock


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def states(editor: FakeEditor) -> list[Any]:
    return [status["state"] for status in editor.statuses]


async def test_each_change_is_told_once_with_all_that_is_known() -> None:
    session, engine, editor, _ = bench()
    session.status.begin()
    engine.move("starting", "starting the engine")
    engine.move("loading", "loading the model")
    for share in (0.26, 0.29, 0.31):
        engine.tell_loading(Loading("load", share))
    engine.move("ready", "ready")
    engine.move("ready", "ready")
    nothing = {"remedy": "", "percent": None, "model": "scripted"}
    reading = {
        "state": "loading",
        "message": "Loading the model: reading its weights.",
        "remedy": "",
        "model": "scripted",
    }
    assert editor.statuses == [
        nothing | {"state": "idle", "message": ""},
        nothing | {"state": "starting", "message": "Starting the engine."},
        nothing | {"state": "loading", "message": "Loading the model."},
        reading | {"percent": 25},
        reading | {"percent": 30},
        nothing | {"state": "ready", "message": ""},
    ]


async def test_a_failure_has_its_remedy_apart() -> None:
    session, engine, editor, _ = bench("ready")
    session.status.begin()
    engine.move("failed", "the model is not here", "run `lacuna models pull`")
    told = editor.statuses[-1]
    assert (told["state"], told["message"], told["remedy"]) == (
        "failed",
        "The model is not here.",
        "Run `lacuna models pull`.",
    )
    engine.move("off", "closed")
    assert editor.statuses[-1]["state"] == "idle"
    assert editor.statuses[-1]["remedy"] == ""


async def test_work_is_told_when_it_lasts_and_until_the_last_of_it_ends() -> None:
    session, _, editor, clock = bench("ready")
    session.status.begin()
    with session.status.work():
        await turns()
    clock.advance(BUSY_AFTER_S)
    await turns()
    assert states(editor) == ["ready"]
    with session.status.work():
        await turns()
        clock.advance(BUSY_AFTER_S)
        await turns()
        with session.status.work():
            await turns()
        assert states(editor) == ["ready", "busy"]
    assert states(editor) == ["ready", "busy", "ready"]


async def test_nobody_is_told_who_did_not_ask_or_before_the_beginning() -> None:
    session, engine, editor, _ = bench(wants=False)
    session.status.begin()
    engine.move("ready", "ready")
    assert editor.statuses == []
    session, engine, editor, _ = bench()
    engine.move("starting", "starting the engine")
    assert editor.statuses == []
    session.status.begin()
    assert states(editor) == ["starting"]


async def test_a_rewrite_makes_the_engine_busy_and_its_end_ready() -> None:
    async with lsp.session({"text": "x", "hold": True}, capabilities=STATUS) as client:
        assert (await client.expect("lacuna/status"))["state"] == "ready"
        client.open("a = 1\n")
        span = {"textDocument": {"uri": "file:///w/a.py"}, "range": lsp.area((0, 0), (1, 0))}
        message = client.call("lacuna/rewrite", span | {"instruction": "Rename it"})
        client.send(message)
        assert (await client.expect("lacuna/status"))["state"] == "busy"
        client.cancel(message)
        assert (await client.expect("lacuna/status"))["state"] == "ready"
        with pytest.raises(lsp.ResponseFault):
            await client.answer(message)
