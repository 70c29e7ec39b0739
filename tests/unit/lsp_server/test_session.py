"""Documents, settings, and who is told what how often."""

from __future__ import annotations

import pytest

from lsp_server.capabilities import Capabilities
from lsp_server.document import Change, Document
from lsp_server.errors import Notice
from lsp_server.positions import PositionEncoding, TextPosition
from lsp_server.session import RESULTS_KEPT, RETRY_PAUSE_S, Session
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine, stats

URI = "file:///a.py"


def new_session(engine: FakeEngine | None = None) -> tuple[Session, FakeEditor, FakeClock]:
    editor, clock = FakeEditor(), FakeClock()
    return Session(engine or FakeEngine(), editor, clock), editor, clock


def opened(session: Session, text: str = "x = 1", version: int = 1) -> None:
    session.open(Document.open(URI, version, "python", text))


def test_a_snapshot_does_not_move_with_the_document() -> None:
    session, _, _ = new_session()
    opened(session, "a🙂b")
    before = session.snapshot(URI)
    assert before is not None
    session.change(URI, 2, [Change(TextPosition(0, 3), TextPosition(0, 4), "c")])
    after = session.snapshot(URI)
    assert after is not None
    assert (before.document.text, after.document.text) == ("a🙂b", "a🙂c")
    assert not session.is_current(before)
    assert session.is_current(after)


def test_a_document_reopened_with_the_same_version_is_another_one() -> None:
    session, _, _ = new_session()
    opened(session)
    before = session.snapshot(URI)
    assert before is not None
    session.close(URI)
    assert not session.is_current(before)
    opened(session)
    assert not session.is_current(before)


def test_a_change_to_an_unknown_document_does_not_make_it_known() -> None:
    session, _, _ = new_session()
    session.change(URI, 2, [Change(None, None, "text")])
    assert session.snapshot(URI) is None
    session.close(URI)
    assert session.document_count == 0


@pytest.mark.parametrize("event", ["change", "close", "open"])
def test_jobs_end_when_their_document_moves_on(event: str) -> None:
    session, _, _ = new_session()
    opened(session)
    job = session.inflight.claim(URI, "rewrite")
    if event == "change":
        session.change(URI, 2, [])
    elif event == "close":
        session.close(URI)
    else:
        opened(session, version=2)
    assert job.is_superseded


def test_turning_off_ends_all_jobs() -> None:
    session, _, _ = new_session()
    opened(session)
    job = session.inflight.claim(URI, "rewrite")
    session.configure({"enable": True})
    assert not job.is_superseded
    session.configure({"enable": False})
    assert job.is_superseded


def test_the_encoding_is_settled_once() -> None:
    session, _, _ = new_session()
    session.begin(Capabilities(), None, encoding=PositionEncoding.UTF8)
    session.configure({"positionEncoding": "utf-16"})
    assert session.encoding is PositionEncoding.UTF8


def test_settings_lie_over_those_of_initialize_and_problems_are_told_once() -> None:
    session, editor, _ = new_session()
    session.begin(Capabilities(), {"drafts": True, "nonsense": 1})
    assert editor.warned == []
    session.report_problems()
    session.report_problems()
    assert editor.warned == ["Lacuna settings: nonsense: unknown setting"]
    session.configure({"context": {"prefixChars": 5}})
    assert (session.settings.drafts, session.settings.prefix_chars) == (True, 5)


def test_a_wrong_setting_is_reported_again_only_when_it_was_mended_or_changed() -> None:
    session, editor, _ = new_session()
    session.begin(Capabilities(), {"nonsense": 1})
    wrong: list[object] = [
        {"drafts": 5},
        {"drafts": 5, "menu": 1},
        {"drafts": "yes", "menu": 1},
        {"menu": 1},
        {"drafts": "yes"},
    ]
    for options in wrong:
        for _ in range(2):
            session.configure(options)
            session.report_problems()
    told = [warning.removeprefix("Lacuna settings: ") for warning in editor.warned]
    assert told == [
        "nonsense: unknown setting; drafts: must be true or false, not a number; using false",
        "menu: unknown setting",
        "drafts: must be true or false, not a string; using false",
        "drafts: must be true or false, not a string; using false",
    ]


def test_a_notice_is_told_once_until_the_engine_is_ready_again() -> None:
    engine = FakeEngine(state="loading")
    session, editor, _ = new_session(engine)
    for _ in range(3):
        session.tell(Notice("internal", "broken", prominent=True))
        session.tell(Notice("loading", "wait", prominent=False))
    assert (editor.shown, editor.logged) == (["broken"], ["wait"])
    engine.move("ready", "ready")
    session.tell(Notice("internal", "broken", prominent=True))
    assert editor.shown == ["broken", "broken"]


def test_each_state_of_the_engine_is_told_once() -> None:
    engine = FakeEngine(state="off")
    session, editor, _ = new_session(engine)
    for _ in range(4):
        engine.move("loading", "loading the model")
        engine.move("failed", "no model; pull it")
    assert (editor.logged, editor.shown) == (["Lacuna: loading the model"], ["Lacuna: no model; pull it"])
    assert session.engine_message == "no model; pull it"
    engine.move("ready", "ready")
    assert editor.logged[1:] == ["Lacuna: ready"]


def test_the_engine_is_woken_only_when_it_is_off_and_wanted() -> None:
    engine = FakeEngine(state="off", state_after_start="loading")
    session, _, _ = new_session(engine)
    session.configure({"enable": False})
    session.wake_engine()
    assert engine.starts == 0
    session.configure({"enable": True})
    session.wake_engine()
    session.wake_engine()
    assert engine.starts == 1


def test_an_engine_that_failed_is_tried_for_a_person_once_in_a_while() -> None:
    engine = FakeEngine(state="failed")
    session, _, clock = new_session(engine)
    assert [session.retry_engine(), session.retry_engine()] == [True, False]
    clock.advance(RETRY_PAUSE_S)
    assert session.retry_engine()
    clock.advance(RETRY_PAUSE_S)
    session.configure({"enable": False})
    assert not session.retry_engine()
    session.configure({"enable": True})
    engine.state = "loading"
    assert not session.retry_engine()
    assert engine.starts == 2


def test_what_a_state_has_told_is_not_told_again_and_a_fault_alerts_who_acted() -> None:
    session, editor, _ = new_session()
    session.tell(Notice("not ready", "wait", prominent=True, is_known=True))
    assert (editor.shown, editor.logged) == ([], [])
    for is_fault in (False, True, True):
        session.answer_act("said", is_fault=is_fault)
    assert (editor.shown, editor.alerts) == (["said"], ["said", "said"])


def test_what_an_act_was_told_is_not_told_to_who_types() -> None:
    engine = FakeEngine()
    session, editor, _ = new_session(engine)
    session.answer_act("broken", is_fault=True)
    session.tell(Notice("internal", "broken", prominent=True))
    assert (editor.shown, editor.alerts) == ([], ["broken"])
    engine.move("ready", "ready")
    session.tell(Notice("internal", "broken", prominent=True))
    assert editor.shown == ["broken"]


def test_only_recent_results_are_kept() -> None:
    session, _, _ = new_session()
    for _ in range(RESULTS_KEPT + 5):
        session.record("inline", stats())
    assert len(session.results) == RESULTS_KEPT
