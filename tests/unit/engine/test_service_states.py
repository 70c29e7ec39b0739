"""The engine's states as a table: what each request is answered in each of them, and which state follows.

loading → ready → draining → gone; a model that cannot be loaded, a Shutdown and a signal lead to draining from both.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.job import Core
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Done,
    Draft,
    Failed,
    Fill,
    Hello,
    Loading,
    Ready,
    Reply,
    Request,
    Rewrite,
    Shutdown,
    Status,
    StatusReport,
)
from tests.fakes.raw_client import PATIENCE_S, RawClient, raw_client, short_home
from tests.fakes.running_service import HangingCore, Running, fill, running

pytestmark = pytest.mark.asyncio
# "silence" is no reply at all; anything else is the kind of a Failed, the state in a report, or the reply's own name.
TABLE = [
    ("loading", fill("a"), "loading"),
    ("loading", Rewrite("a", "python", "", "x", "", "steps=1"), "loading"),
    ("loading", Cancel("a"), "silence"),
    ("loading", Status(), "report loading"),
    ("loading", Hello(PROTOCOL_VERSION, "again"), "bad_request"),
    ("loading", Shutdown(), "draining"),
    ("ready", fill("a"), "Done"),
    ("ready", Rewrite("a", "python", "", "x", "", "steps=1"), "Done"),
    ("ready", Cancel("a"), "silence"),
    ("ready", Status(), "report ready"),
    ("ready", Hello(PROTOCOL_VERSION, "again"), "bad_request"),
    ("ready", Shutdown(), "draining"),
    ("draining", fill("a"), "draining"),
    ("draining", Rewrite("a", "python", "", "x", "", "steps=1"), "draining"),
    ("draining", Cancel("a"), "silence"),
    ("draining", Status(), "report draining"),
    ("draining", Hello(PROTOCOL_VERSION, "again"), "bad_request"),
    ("draining", Shutdown(), "silence"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


class Stage:
    """A service that stays in the state wanted until `end`."""

    def __init__(self, engine: Running, client: RawClient, end: Callable[[], None]) -> None:
        self.engine = engine
        self.client = client
        self.end = end


@asynccontextmanager
async def in_state(home: Path, state: str) -> AsyncIterator[Stage]:
    may_load, core = threading.Event(), HangingCore()
    if state != "loading":
        may_load.set()

    def load(progress: Callable[[str, float], None]) -> Core:
        while not may_load.wait(0.01):
            progress("weights", 0.5)
        return core

    def end() -> None:
        may_load.set()
        core.may_end.set()

    async with running(home, load) as engine, raw_client(engine.address) as client:
        try:
            client.send(Hello(PROTOCOL_VERSION, "test"))
            wanted = Loading if state == "loading" else Ready
            while not isinstance(await client.receive(), wanted):
                pass
            if state == "draining":
                client.send(fill("hangs", wants_drafts=True))
                assert isinstance(await client.receive(), Draft)
                client.send(Shutdown())
            yield Stage(engine, client, end)
        finally:
            end()


def name_of(reply: Reply | None) -> str:
    match reply:
        case None:
            return "silence"
        case Failed(kind=kind):
            assert reply.message
            assert reply.remedy
            return kind
        case StatusReport(state=state):
            return f"report {state}"
        case _:
            return type(reply).__name__


async def first_word(stage: Stage, request: Request) -> str:
    """What comes first of the request; a Status behind it shows that nothing did."""
    stage.client.send(request, Status())
    while isinstance(reply := await stage.client.receive(), Loading):
        pass
    is_report = isinstance(reply, StatusReport)
    return "silence" if is_report and not isinstance(request, Status) else name_of(reply)


@pytest.mark.parametrize(("state", "request_", "answer"), TABLE)
async def test_each_request_in_each_state(home: Path, state: str, request_: Request, answer: str) -> None:
    async with in_state(home, state) as stage:
        if isinstance(request_, Shutdown) and state != "draining":
            stage.client.send(request_)
            stage.end()
            replies = [reply for reply in await stage.client.receive_all() if not isinstance(reply, Loading)]
            assert name_of(replies[-1]) == answer
            assert await stage.engine.status_at_end() == 0
            assert not stage.engine.address.path.exists()
        elif answer == "Done":
            stage.client.send(request_)
            assert isinstance(await stage.client.receive(), Done)
        else:
            assert await first_word(stage, request_) == answer


async def test_the_table_has_every_request_in_every_state() -> None:
    kinds = {Fill, Rewrite, Cancel, Status, Hello, Shutdown}
    assert {(state, type(request)) for state, request, _ in TABLE} == {
        (state, kind) for state in ("loading", "ready", "draining") for kind in kinds
    }


@pytest.mark.parametrize("state", ["loading", "ready"])
async def test_a_client_that_comes_is_told_the_state(home: Path, state: str) -> None:
    async with in_state(home, state) as stage, raw_client(stage.engine.address) as other:
        other.send(Hello(PROTOCOL_VERSION, "later"))
        assert isinstance(await other.receive(), Loading if state == "loading" else Ready)


async def test_nobody_comes_in_while_it_drains_and_it_is_gone_when_its_step_has_ended(home: Path) -> None:
    async with in_state(home, "draining") as stage:
        stage.client.send(Status())
        assert name_of(await stage.client.receive()) == "report draining"
        with pytest.raises(OSError, match=r"No such file|refused"):
            await asyncio.open_unix_connection(stage.engine.address.path)
        stage.end()
        replies = [reply for reply in await stage.client.receive_all() if not isinstance(reply, Draft)]
        assert [name_of(reply) for reply in replies] == ["Cancelled", "draining"]
        async with asyncio.timeout(PATIENCE_S):
            assert await stage.engine.status_at_end() == 0
