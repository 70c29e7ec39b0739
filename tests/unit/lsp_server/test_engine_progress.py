"""An engine on its way is shown in the editor's progress: once it takes long, until it is there, without a message."""

from __future__ import annotations

import asyncio

import pytest
from pygls.exceptions import JsonRpcRequestCancelled

from engine.protocol.messages import Loading
from lsp_server.capabilities import Capabilities
from lsp_server.engine_client import EngineState
from lsp_server.engine_progress import TITLE
from lsp_server.progress import LONG_S
from lsp_server.session import Session
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine

pytestmark = pytest.mark.asyncio


class Bench:
    """A session whose engine is off, in an editor that shows progress unless `shows` says no."""

    def __init__(self, editor: FakeEditor | None = None, *, shows: bool = True, wants_status: bool = False) -> None:
        self.engine, self.editor, self.clock = FakeEngine(state="off"), editor or FakeEditor(), FakeClock()
        self.session = Session(self.engine, self.editor, self.clock)
        self.session.begin(Capabilities(shows_progress=shows, wants_status=wants_status), None)

    async def move(self, *states: EngineState, seconds: float = 0.0) -> None:
        for state in states:
            self.engine.move(state, "")
        await turns()
        self.clock.advance(seconds)
        await turns()

    def sent(self) -> list[tuple[str, str | None]]:
        return [(value.kind, getattr(value, "message", None)) for _, value in self.editor.progress]  # type: ignore[attr-defined]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_slow_start_is_shown_until_the_engine_is_ready() -> None:
    bench = Bench()
    await bench.move("starting", "loading")
    bench.engine.tell_loading(Loading("load", 0.0))
    await bench.move(seconds=LONG_S)
    assert bench.sent() == [("begin", "reading its weights")]
    assert bench.editor.progress[0][1].title == TITLE  # type: ignore[attr-defined]
    for share in (0.26, 0.29, 0.31):
        bench.engine.tell_loading(Loading("load", share))
    await bench.move("ready")
    assert bench.sent()[1:] == [
        ("report", "reading its weights (25 %)"),
        ("report", "reading its weights (30 %)"),
        ("end", None),
    ]
    assert {token for token, _ in bench.editor.progress} == set(bench.editor.tokens)
    assert (bench.editor.shown, bench.editor.alerts) == ([], [])


async def test_a_quick_start_shows_nothing() -> None:
    bench = Bench()
    await bench.move("starting", "loading", seconds=LONG_S / 2)
    await bench.move("ready", seconds=LONG_S)
    assert (bench.editor.tokens, bench.editor.progress) == ([], [])


@pytest.mark.parametrize("state", ["failed", "off"])
async def test_an_engine_that_does_not_come_ends_it_and_the_next_try_is_shown_anew(state: EngineState) -> None:
    bench = Bench()
    for _ in range(2):
        await bench.move("loading", seconds=LONG_S)
        await bench.move(state)
    assert [kind for kind, _ in bench.sent()] == ["begin", "end"] * 2
    assert len(set(bench.editor.tokens)) == 2


async def test_an_editor_without_progress_is_not_bothered() -> None:
    bench = Bench(shows=False)
    await bench.move("loading", seconds=LONG_S)
    bench.engine.tell_loading(Loading("load", 0.5))
    await bench.move("ready")
    assert (bench.editor.tokens, bench.editor.progress) == ([], [])


class Refusing(FakeEditor):
    """An editor that gives no token."""

    async def create_progress(self, token: str) -> None:
        raise JsonRpcRequestCancelled


async def test_an_editor_that_shows_the_status_is_not_told_twice() -> None:
    bench = Bench(wants_status=True)
    await bench.move("starting", "loading", seconds=2 * LONG_S)
    await bench.move("ready")
    assert bench.sent() == []


async def test_an_editor_that_refuses_a_token_sees_nothing() -> None:
    bench = Bench(Refusing())
    await bench.move("loading", seconds=LONG_S)
    bench.engine.tell_loading(Loading("load", 0.5))
    await bench.move("ready")
    assert bench.editor.progress == []
