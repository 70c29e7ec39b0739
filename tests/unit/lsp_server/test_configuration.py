"""Settings that are asked for several times: the newest answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.capabilities import Capabilities
from lsp_server.document import Document
from lsp_server.features import configuration, inline_completion
from lsp_server.session import Session
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine

FOLDER = "file:///w"


class SlowEditor(FakeEditor):
    """Answers each question when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[asyncio.Future[list[object]]] = []

    async def pull_configuration(self, folders: Sequence[str]) -> list[object]:
        question: asyncio.Future[list[object]] = asyncio.get_running_loop().create_future()
        self.questions.append(question)
        return await question


def tokens(count: int) -> dict[str, object]:
    return {"inlineCompletion": {"maxTokens": count}}


def new_session(editor: FakeEditor) -> Session:
    session = Session(FakeEngine(), editor, FakeClock())
    session.begin(Capabilities(pulls_configuration=True), None, [FOLDER])
    return session


async def asked(editor: SlowEditor, *pulls: asyncio.Task[None]) -> None:
    """Let every pull ask its question, in their order."""
    while len(editor.questions) < len(pulls):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_an_answer_that_was_overtaken_is_dropped() -> None:
    editor = SlowEditor()
    session = new_session(editor)
    pulls = [asyncio.create_task(configuration.pull(session)) for _ in range(2)]
    await asked(editor, *pulls)
    editor.questions[1].set_result([tokens(2), tokens(22)])
    await pulls[1]
    editor.questions[0].set_result([tokens(1), tokens(11)])
    await pulls[0]
    assert session.settings.inline_max_tokens == 2
    assert session.vicinity.settings_for(f"{FOLDER}/a.py").inline_max_tokens == 22


@pytest.mark.asyncio
async def test_a_push_outdoes_what_was_asked_before_it() -> None:
    editor = SlowEditor()
    session = new_session(editor)
    first = asyncio.create_task(configuration.pull(session))
    await asked(editor, first)
    pushed = configuration.did_change_configuration(session, types.DidChangeConfigurationParams(tokens(3)))
    assert pushed is not None
    second = asyncio.ensure_future(pushed)
    while len(editor.questions) < 2:
        await asyncio.sleep(0)
    for question in editor.questions:
        question.set_result([tokens(1), tokens(33)])
    await first
    await second
    assert session.settings.inline_max_tokens == 3
    assert session.vicinity.settings_for(f"{FOLDER}/a.py").inline_max_tokens == 33


@pytest.mark.asyncio
async def test_a_refusal_leaves_the_settings_and_lets_work_begin() -> None:
    editor = SlowEditor()
    session = new_session(editor)
    session.configure(tokens(5))
    pull = asyncio.create_task(configuration.pull(session))
    await asked(editor, pull)
    editor.questions[0].set_exception(JsonRpcException("no", -32601))
    await pull
    assert session.settings.inline_max_tokens == 5
    assert not session.awaits_settings


@pytest.mark.asyncio
async def test_ghost_text_waits_for_the_settings_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_completion, "SETTINGS_PATIENCE_S", 0.01)
    session = new_session(SlowEditor())
    session.open(Document.open(f"{FOLDER}/a.py", 1, "python", "total = "))
    params = types.InlineCompletionParams(
        types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
        types.TextDocumentIdentifier(f"{FOLDER}/a.py"),
        types.Position(0, 8),
    )
    reply = inline_completion.inline_completion(session, params)
    assert isinstance(reply, Awaitable)
    assert session.inflight.count == 1
    assert await reply is None
    assert session.inflight.count == 0
    assert session.awaits_settings
