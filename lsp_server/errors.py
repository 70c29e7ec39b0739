"""What the editor is told when something does not work out.

    NoAnswer                    nothing to offer: the reply is null or empty, nobody is bothered
    content_modified  -32801    the text moved on while the engine worked; editors are quiet about it
    invalid_params    -32602    the request itself is wrong; says in what
    Notice                      one message to a person, at most once while the engine's state lasts

Maps every engine failure kind to a `Notice`. Sends nothing itself. Messages hold no document text.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from engine.protocol.errors import EngineError

# Kinds that pass by themselves: worth a line in the log, not a person's attention.
PASSING_KINDS = frozenset({"loading", "draining"})
# Kinds that come from one request and say nothing about the next.
REQUEST_KINDS = frozenset({"bad_request", "window_exceeded", "round_trip"})


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to a person. `key` names its cause: a second one with the same key is not sent.

    `prominent` notices ask for a person's action and are shown; the others only reach the editor's log.
    """

    key: str
    text: str
    prominent: bool


class NoAnswer(Exception):  # noqa: N818 (an outcome, named as the other outcomes are)
    """The engine has nothing for this request. `notice` says why, None when that has been said."""

    def __init__(self, notice: Notice | None) -> None:
        super().__init__(notice.key if notice is not None else "nothing")
        self.notice = notice


def notice_for(error: EngineError) -> Notice:
    """What a person is told about an engine failure: what happened, and what to do about it."""
    text = f"Lacuna: {error.message}" + (f" {error.remedy}" if error.remedy else "")
    return Notice(error.kind, text, prominent=error.kind not in PASSING_KINDS)


def notice_for_state(state: str, message: str) -> Notice:
    """What a person is told when the engine's state changes. Only a lasting fault is worth showing."""
    text = f"Lacuna: {message}" if message else f"Lacuna: the engine is {state}."
    return Notice(state, text, prominent=state in ("missing", "failed"))


def content_modified() -> JsonRpcException:
    """The reply to a request whose document has changed since."""
    return JsonRpcContentModified("the text changed while the engine worked; nothing was applied")


def invalid_params(message: str) -> JsonRpcException:
    """The reply to a request that cannot be understood; `message` says what is wrong with it."""
    return JsonRpcInvalidParams(message)


def describe(error: BaseException) -> str:
    """An unexpected error for the log: type and code locations, never its message, which may quote a document."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    return f"{type(error).__name__} in {places}" if places else type(error).__name__
