"""Features on a session with a scripted engine: what does not need the wire to be seen."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from lsprotocol import types

from engine.protocol.messages import Draft
from lsp_server.document import Document
from lsp_server.drafts import DraftFeed, Place
from lsp_server.features.inline_completion import inline_completion
from lsp_server.features.sync import garbled
from lsp_server.ghost_text import GhostText
from lsp_server.session import Session
from lsp_server.suggestion import inserted_text
from lsp_server.words import word_start
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine, Reply

URI = "file:///a.py"


def opened_session(engine: FakeEngine, text: str) -> tuple[Session, FakeEditor, FakeClock]:
    editor, clock = FakeEditor(), FakeClock()
    session = Session(engine, editor, clock)
    session.open(Document.open(URI, 1, "python", text))
    return session, editor, clock


def ghost_params(trigger: types.InlineCompletionTriggerKind) -> types.InlineCompletionParams:
    return types.InlineCompletionParams(
        types.InlineCompletionContext(trigger), types.TextDocumentIdentifier(URI), types.Position(0, 8)
    )


AUTOMATIC = ghost_params(types.InlineCompletionTriggerKind.Automatic)
INVOKED = ghost_params(types.InlineCompletionTriggerKind.Invoked)


def begin(session: Session, params: types.InlineCompletionParams) -> asyncio.Future[Any]:
    """A request as the protocol runs it: the part before the first await now, the rest as a task."""

    async def result(reply: Any) -> Any:
        return await reply if inspect.isawaitable(reply) else reply

    return asyncio.ensure_future(result(inline_completion(session, params)))


@pytest.mark.asyncio
async def test_a_burst_of_keys_asks_once_for_the_first_and_once_for_the_last() -> None:
    engine = FakeEngine(replies=[Reply(hold=True), Reply("a + b")])
    session, _, clock = opened_session(engine, "total = ")
    tasks = [begin(session, AUTOMATIC)]
    await engine.asked(1)
    for _ in range(10):
        clock.advance(0.01)
        tasks.append(begin(session, AUTOMATIC))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks[:-1])
    assert [task.result() for task in tasks[:-1]] == [None] * 10
    assert len(engine.requests) == 1
    clock.advance(1)
    assert (await tasks[-1]).items[0].insert_text == "a + b"
    assert len(engine.requests) == 2


@pytest.mark.asyncio
async def test_who_asks_explicitly_is_not_kept_waiting() -> None:
    engine = FakeEngine(replies=[Reply(hold=True), Reply("a + b")])
    session, _, _ = opened_session(engine, "total = ")
    begun = begin(session, AUTOMATIC)
    await engine.asked(1)
    assert (await begin(session, INVOKED)).items[0].insert_text == "a + b"
    assert await begun is None


@pytest.mark.asyncio
async def test_a_job_that_is_over_holds_no_place() -> None:
    session, _, _ = opened_session(FakeEngine(replies=[Reply("a")]), "total = ")
    await begin(session, INVOKED)
    assert session.inflight.count == 0


def test_drafts_are_thinned_to_twenty_a_second() -> None:
    session, editor, clock = opened_session(FakeEngine(), "total = ")
    snapshot = session.snapshot(URI)
    assert snapshot is not None
    place = Place(snapshot.document, snapshot.encoding, 8, 8)
    feed = DraftFeed(editor, clock, lambda: place)
    for step in range(100):
        feed(Draft("1", "a" * step, 0, step, 100))
        clock.advance(0.01)
    assert 18 <= len(editor.drafts) <= 20
    assert editor.drafts[0] == {
        "uri": URI,
        "version": 1,
        "range": {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 8}},
        "text": "",
        "settled": 0,
        "step": 0,
        "steps": 100,
    }


@pytest.mark.parametrize(
    ("text", "offset", "start"),
    [
        ("", 0, 0),
        ("x = ", 4, 4),
        ("x = pr", 6, 4),
        ("naïve_x2", 8, 0),
        ("a.b", 3, 2),
        ("変数", 2, 0),
        ("word\n", 5, 5),
        ("word\r\n", 6, 6),
    ],
)
def test_a_word_begins_behind_what_is_no_letter(text: str, offset: int, start: int) -> None:
    assert word_start(Document.open(URI, 1, "python", text), offset) == start


@pytest.mark.parametrize(
    ("ghost", "expected"),
    [
        (GhostText(4, 4, "new"), "new"),
        (GhostText(2, 4, "cdnew"), "new"),
        (GhostText(4, 5, "newe"), "new"),
        (GhostText(2, 6, "cdnewef"), "new"),
        (GhostText(2, 4, "new"), None),
        (GhostText(4, 6, "new"), None),
        (GhostText(3, 5, "d"), None),
        (GhostText(5, 6, "f"), None),
    ],
)
def test_what_is_inserted_when_the_rest_stays(ghost: GhostText, expected: str | None) -> None:
    assert inserted_text(ghost, "abcdef", 4) == expected


@pytest.mark.parametrize("params", [None, [], {"textDocument": 5}, {"textDocument": {"uri": 5}}])
def test_a_garbled_change_without_a_document_is_harmless(params: Any) -> None:
    session, _, _ = opened_session(FakeEngine(), "text")
    garbled(session, types.TEXT_DOCUMENT_DID_CHANGE, params)
    garbled(session, "foo/bar", {"textDocument": {"uri": URI}})
    assert session.document_count == 1
    garbled(session, types.TEXT_DOCUMENT_DID_CHANGE, {"textDocument": {"uri": URI}})
    assert session.document_count == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["cancelled", "text changed"])
async def test_keys_that_outrun_the_engine_make_the_pauses_longer_and_answers_shorter(how: str) -> None:
    engine = FakeEngine(replies=[Reply(hold=True), Reply("a + b")])
    session, _, clock = opened_session(engine, "total = ")
    task = begin(session, AUTOMATIC)
    await engine.asked(1)
    before = session.typing.debounce.window_s
    if how == "text changed":
        session.change(URI, 2, [])
        await task
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    grown = session.typing.debounce.window_s
    assert grown > before
    clock.advance(1)
    assert (await begin(session, INVOKED)).items
    assert session.typing.debounce.window_s < grown


@pytest.mark.asyncio
async def test_a_request_that_ends_in_its_pause_has_outrun_nobody() -> None:
    engine = FakeEngine(replies=[Reply(hold=True)])
    session, _, clock = opened_session(engine, "total = ")
    first = begin(session, AUTOMATIC)
    await engine.asked(1)
    clock.advance(0.01)
    second = begin(session, AUTOMATIC)
    await first
    grown = session.typing.debounce.window_s
    session.change(URI, 2, [])
    assert await second is None
    assert session.typing.debounce.window_s == grown
    assert len(engine.requests) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_a_document_lost_to_a_garbled_change_is_told_once(times: int) -> None:
    editor = FakeEditor()
    session = Session(FakeEngine(), editor, FakeClock())
    session.open(Document.open("file:///w/some%20file.py", 1, "python", "x"))
    for _ in range(times):
        garbled(session, types.TEXT_DOCUMENT_DID_CHANGE, {"textDocument": {"uri": "file:///w/some%20file.py"}})
    (said,) = editor.shown
    assert "some file.py" in said
    assert "opened again" in said
    garbled(session, types.TEXT_DOCUMENT_DID_OPEN, {"textDocument": {"uri": "file:///w/other.py"}})
    assert len(editor.shown) == 2
