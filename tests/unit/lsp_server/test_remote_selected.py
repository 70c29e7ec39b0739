"""The engine that settings select: switched while the server runs, and told of before anything leaves."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from engine.protocol.messages import Fill
from lsp_server.document import Document
from lsp_server.engine_client import EngineProcess
from lsp_server.inflight import Superseded
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.factory import engine_for, engine_of
from lsp_server.remote.remote_engine import RemoteEngine
from lsp_server.remote.selected import SelectedEngine
from lsp_server.session import Session
from lsp_server.settings import Settings
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine

pytestmark = pytest.mark.asyncio

FAR = "https://engine.example.org"
URI = "file:///w/app/a.py"


class Made:
    """Fake engines, one for each choice that was made."""

    def __init__(self) -> None:
        self.engines: list[tuple[EngineChoice, FakeEngine]] = []

    def __call__(self, choice: EngineChoice) -> FakeEngine:
        engine = FakeEngine(state="off", model=choice.url or "local")
        self.engines.append((choice, engine))
        return engine

    @property
    def newest(self) -> FakeEngine:
        return self.engines[-1][1]


def session_of(made: Made) -> tuple[Session, FakeEditor]:
    editor = FakeEditor()
    engine = SelectedEngine(made)
    session = Session(engine, editor, FakeClock())
    session.choose_engine = engine.select
    session.open(Document.open(URI, 1, "python", "x = 1\n"))
    return session, editor


async def test_until_settings_say_otherwise_it_is_the_local_engine() -> None:
    made = Made()
    session, editor = session_of(made)
    session.wake_engine()
    assert [choice for choice, _ in made.engines] == [EngineChoice()]
    assert made.newest.starts == 1
    assert editor.shown == []


async def test_a_url_selects_another_one_and_the_first_is_let_go() -> None:
    made = Made()
    session, _ = session_of(made)
    session.wake_engine()
    session.configure({"engine": {"url": FAR, "model": "m", "timeoutMs": 5000}})
    session.wake_engine()
    (_, local), (choice, remote) = made.engines
    assert choice == EngineChoice(FAR, model="m", timeout_s=5.0)
    assert remote.starts == 1
    assert session.engine.model == FAR
    await asyncio.sleep(0)
    assert local.closed
    session.configure({"engine": {"url": ""}})
    session.wake_engine()
    assert session.engine.model == "local"
    await session.engine.close()
    assert made.newest.closed


async def test_the_first_choice_is_no_other_one() -> None:
    made = Made()
    session, editor = session_of(made)
    session.configure({"engine": {"url": FAR}})
    session.wake_engine()
    assert not any("another engine" in line for line in editor.logged)
    session.configure({"engine": {"url": ""}})
    session.wake_engine()
    assert [line for line in editor.logged if "another engine" in line] == ["Lacuna: another engine was chosen"]


@pytest.mark.parametrize("engine", [{"url": "http://engine.example.org"}, {"url": FAR, "allowFolders": ["src"]}])
async def test_where_nothing_is_sent_nobody_is_told_that_it_is(engine: dict[str, object]) -> None:
    session, editor = session_of(Made())
    session.configure({"engine": engine})
    session.wake_engine()
    assert editor.shown == []
    session.configure({"engine": {"url": FAR, "allowFolders": ["/w/app"]}})
    session.wake_engine()
    assert len(editor.shown) == 1


async def test_the_same_settings_again_change_nothing() -> None:
    made = Made()
    session, editor = session_of(made)
    for tokens in (10, 20):
        session.configure({"engine": {"url": FAR}, "inlineCompletion": {"maxTokens": tokens}})
        session.wake_engine()
    assert len(made.engines) == 2
    assert len(editor.shown) == 1


async def test_that_documents_leave_is_said_once_for_each_host_and_before_the_engine_is_started() -> None:
    made = Made()
    session, editor = session_of(made)
    for url in (FAR, "", FAR, "https://other.example.org", "http://127.0.0.1:8080"):
        session.configure({"engine": {"url": url}})
        session.wake_engine()
    assert len(editor.shown) == 2
    assert "engine.example.org" in editor.shown[0]
    assert "other.example.org" in editor.shown[1]


async def test_nothing_is_selected_while_settings_are_awaited_or_lacuna_is_off() -> None:
    made = Made()
    session, editor = session_of(made)
    session.configure({"enable": False, "engine": {"url": FAR}})
    session.wake_engine()
    session.begin(dataclasses.replace(session.capabilities, pulls_configuration=True), {"engine": {"url": FAR}})
    assert session.awaits_settings
    session.wake_engine()
    assert len(made.engines) == 1
    assert editor.shown == []


@pytest.mark.parametrize("options", [{"url": FAR}, {"url": FAR, "allowFolders": ["/w/other"]}])
async def test_what_was_asked_under_other_settings_reaches_no_other_engine(options: dict[str, object]) -> None:
    """A job that waits while the engine changes must not send what the new settings keep back."""
    made = Made()
    session, _ = session_of(made)
    session.configure({"engine": {"url": FAR}} if "allowFolders" in options else None)
    session.wake_engine()
    job = session.inflight.claim(URI, "inline")
    session.configure({"engine": options})
    session.wake_engine()
    with pytest.raises(Superseded):
        await job.run(session.engine.submit(Fill("a", "python", "secret", "")))
    assert made.newest.requests == []


async def test_what_an_engine_says_that_was_let_go_is_no_news() -> None:
    made = Made()
    engine = SelectedEngine(made)
    heard: list[tuple[str, str]] = []
    engine.on_state(lambda state, message: heard.append((state, message)))
    first = made.newest
    engine.select(Settings(engine_url=FAR))
    heard.clear()
    first.move("failed", "gone")
    assert heard == []
    made.newest.move("ready", "")
    assert heard == [("ready", "")]
    await engine.close()


async def test_every_choice_has_its_engine() -> None:
    assert isinstance(engine_for(Settings(), "m"), EngineProcess)
    for api in ("auto", "openai", "lacuna"):
        engine = engine_of(EngineChoice(FAR, api), "m")
        assert isinstance(engine, RemoteEngine)
        assert engine.state == "off"
