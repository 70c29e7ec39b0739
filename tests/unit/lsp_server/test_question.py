"""A question to the engine, and what is said of one that nobody answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, StatusReport
from lsp_server.engine_client import EngineGone
from lsp_server.errors import NoAnswer
from lsp_server.question import ask
from lsp_server.session import Session
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine, Reply


@pytest.mark.parametrize(("running", "said"), [(2, "busy with other work"), (1, "busy"), (None, "lacuna engine stop")])
def test_why_an_answer_did_not_come_in_time(running: int | None, said: str) -> None:
    class Late(FakeEngine):
        async def status(self) -> StatusReport:
            if running is None:
                raise EngineGone("no engine is connected")
            return replace(await super().status(), jobs_running=running)

    async def asked() -> str:
        session = Session(Late([Reply(hold=True)]), FakeEditor(), FakeClock())
        job = session.inflight.claim("file:///a.py", "rewrite")
        with pytest.raises(NoAnswer) as nothing:
            await ask(session, job, Fill("1", "python", "", ""), patience_s=0.01)
        return nothing.value.notice.text

    text = asyncio.run(asked())
    assert said in text
    assert ("lacuna engine stop" in text) is (running is None)


@pytest.mark.asyncio
async def test_an_engine_that_fails_under_an_act_is_told_of_once_and_by_the_act() -> None:
    engine = FakeEngine(replies=[Reply(hold=True, error=EngineError("unreachable", "far.example.org failed", "wait"))])
    editor = FakeEditor()
    session = Session(engine, editor, FakeClock())
    asking = asyncio.create_task(
        ask(session, session.inflight.claim("file:///a.py", "rewrite"), Fill("1", "python", "", ""))
    )
    await engine.asked(1)
    engine.move("failed", "far.example.org failed. Wait.", "wait")
    engine.release()
    with pytest.raises(NoAnswer) as nothing:
        await asking
    assert "far.example.org failed" in nothing.value.notice.text
    assert editor.shown == []
    # Who only types is told, there being no act that is answered.
    engine.move("failed", "far.example.org is gone. Wait.", "wait")
    assert editor.shown == ["Lacuna: far.example.org is gone. Wait."]
