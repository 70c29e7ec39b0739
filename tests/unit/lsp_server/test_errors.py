"""Every engine failure has something to say to a person, and nothing of a document reaches the log."""

from __future__ import annotations

import pytest

from engine.protocol.errors import FAILURE_KINDS, EngineError
from lsp_server.errors import content_modified, describe, invalid_params, notice_for, notice_for_state


@pytest.mark.parametrize("kind", sorted(FAILURE_KINDS))
def test_every_failure_kind_says_what_happened_and_what_to_do(kind: str) -> None:
    notice = notice_for(EngineError(kind, "It went wrong.", "Do this."))
    assert (notice.key, notice.text) == (kind, "Lacuna: It went wrong. Do this.")


def test_message_and_remedy_are_told_as_two_sentences() -> None:
    notice = notice_for(EngineError("gone", "the engine went away", "ask again; it is started anew"))
    assert notice.text == "Lacuna: the engine went away. Ask again; it is started anew."


@pytest.mark.parametrize("kind", sorted(FAILURE_KINDS))
def test_only_what_the_engine_is_to_blame_for_is_a_fault(kind: str) -> None:
    harmless = {"loading", "draining", "overloaded", "quota_exceeded", "bad_request"}
    harmless |= {"window_exceeded", "round_trip", "unsatisfied"}
    assert notice_for(EngineError(kind, "a", "b")).is_fault is (kind not in harmless)


@pytest.mark.parametrize(
    ("kind", "prominent"),
    [("loading", False), ("draining", False), ("model_missing", True), ("out_of_memory", True), ("internal", True)],
)
def test_what_passes_by_itself_is_only_logged(kind: str, prominent: bool) -> None:
    assert notice_for(EngineError(kind, "a", "b")).prominent is prominent


def test_only_a_lasting_fault_of_the_engine_is_shown() -> None:
    shown = {state: notice_for_state(state, "").prominent for state in ("off", "loading", "ready", "failed")}
    assert shown == {"off": False, "loading": False, "ready": False, "failed": True}


def test_codes_that_editors_are_quiet_about() -> None:
    assert content_modified().code == -32801
    assert invalid_params("no uri").code == -32602


def test_a_description_has_the_place_and_not_the_message() -> None:
    try:
        int("SECRET_MARK_42")
    except ValueError as error:
        described = describe(error)
    assert described.startswith("ValueError in test_a_description_has_the_place")
    assert "SECRET_MARK_42" not in described
    assert describe(KeyError("SECRET_MARK_42")) == "KeyError"
