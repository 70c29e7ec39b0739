"""Progress: begun, reported and ended in order, on the client's token or on one of its own, and cancelled by either."""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from lsp_server.progress import LONG_S, Progress, ProgressBoard
from tests.fakes.fake_editor import FakeClock, FakeEditor

pytestmark = pytest.mark.asyncio


class Bench:
    """A progress and everything around it; `stopped` counts how often the work was told to stop."""

    def __init__(self, editor: FakeEditor | None = None) -> None:
        self.board, self.editor, self.clock = ProgressBoard(), editor or FakeEditor(), FakeClock()
        self.stopped = 0

    def progress(self, token: str | None = None, *, creates: bool = False) -> Progress:
        return Progress(self.board, self.editor, self.clock, "Simplify", self._stop, token=token, creates=creates)

    def _stop(self) -> None:
        self.stopped += 1

    def sent(self) -> list[tuple[str, int | None]]:
        return [(value.kind, getattr(value, "percentage", None)) for _, value in self.editor.progress]  # type: ignore[attr-defined]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_clients_own_token_is_reported_on_at_once_and_let_go() -> None:
    bench = Bench()
    async with bench.progress("t1") as progress:
        progress.report(10, 40)
        progress.report(9, 40)
        progress.report(400, 40)
    assert bench.sent() == [("begin", 0), ("report", 25), ("report", 99), ("end", None)]
    assert {token for token, _ in bench.editor.progress} == {"t1"}
    assert bench.board.count == 0
    progress.report(1, 1)
    assert len(bench.editor.progress) == 4


async def test_several_parts_share_the_way() -> None:
    bench = Bench()
    async with bench.progress("t1") as progress:
        progress.report(5, 10, part=0, parts=2)
        progress.report(0, 10, part=1, parts=2)
        progress.report(5, 10, part=1, parts=2)
    assert [percent for kind, percent in bench.sent() if kind == "report"] == [25, 50, 75]
    value = bench.editor.progress[-2][1]
    assert isinstance(value, types.WorkDoneProgressReport)
    assert value.message == "5 of about 10 characters, 2 of 2"


async def test_short_work_shows_nothing() -> None:
    bench = Bench()
    async with bench.progress(creates=True) as progress:
        await turns()
        progress.report(1, 2)
        bench.clock.advance(LONG_S / 2)
        await turns()
    assert bench.editor.tokens == []
    assert bench.editor.progress == []


async def test_long_work_asks_for_a_token_and_begins_where_it_is() -> None:
    bench = Bench()
    async with bench.progress(creates=True) as progress:
        await turns()
        progress.report(1, 2)
        bench.clock.advance(LONG_S)
        await turns()
        progress.report(3, 4)
    assert len(bench.editor.tokens) == 1
    assert {token for token, _ in bench.editor.progress} == set(bench.editor.tokens)
    assert bench.sent() == [("begin", 50), ("report", 75), ("end", None)]


async def test_no_token_and_no_right_to_one_is_silence() -> None:
    bench = Bench()
    async with bench.progress() as progress:
        progress.report(1, 2)
        assert not progress.is_wanted
        await turns()
        bench.clock.advance(LONG_S)
        await turns()
    assert (bench.editor.tokens, bench.editor.progress) == ([], [])


class Refusing(FakeEditor):
    """An editor that gives no token."""

    async def create_progress(self, token: str) -> None:
        raise JsonRpcRequestCancelled


async def test_a_client_that_refuses_a_token_loses_only_the_progress() -> None:
    bench = Bench(Refusing())
    async with bench.progress(creates=True):
        await turns()
        bench.clock.advance(LONG_S)
        await turns()
    assert bench.editor.progress == []


async def test_the_button_stops_the_work_once() -> None:
    bench = Bench()
    async with bench.progress("t1") as progress:
        bench.board.cancel("other")
        assert (bench.stopped, progress.is_cancelled) == (0, False)
        bench.board.cancel("t1")
        assert (bench.stopped, progress.is_cancelled) == (1, True)
    bench.board.cancel("t1")
    assert bench.stopped == 1
    assert bench.sent()[-1] == ("end", None)
