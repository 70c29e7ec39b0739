"""What the editor is told when something does not work out.

    NoAnswer                    nothing to offer: the reply is null or empty, nobody is bothered
    content_modified  -32801    the text moved on while the engine worked; editors are quiet about it
    outdated          -32801    the text had moved on before anything was begun
    overtaken         -32800    the text is the same, but the answer is not wanted any more; editors are quiet, too
    invalid_params    -32602    the request itself is wrong; says in what
    Notice                      one message to a person: the answer to an act of theirs, or, where they only
                                type, at most once while the engine's state lasts

Maps every engine failure kind to a `Notice`. Sends nothing itself. Messages hold no document text.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from pygls.exceptions import (
    JsonRpcContentModified,
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcRequestCancelled,
)

from engine.protocol.errors import EngineError
from lsp_server.sentences import sentences
from lsp_server.uris import parts_of

# Of a file's name in a message.
_NAME_CHARS = 100

# Kinds that pass by themselves: worth a line in the log, not a person's attention.
PASSING_KINDS = frozenset({"loading", "draining", "overloaded", "quota_exceeded"})
# Kinds that come from one request and say nothing about the next.
REQUEST_KINDS = frozenset({"bad_request", "window_exceeded", "round_trip", "unsatisfied"})

# Kinds that say that the engine was lost in the middle of something.
LOSS_KINDS = frozenset({"gone", "unreachable"})


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to a person. `key` names its cause: who only types is not sent a second one with the same key.

    `prominent` notices ask for a person's action and are shown; the others only reach the editor's log. `is_fault`
    says that the engine failed. `is_known` says that the engine's change of state has told it already. The answer
    to a person's own act is always shown.
    """

    key: str
    text: str
    prominent: bool
    is_fault: bool = False
    is_known: bool = False


class NoAnswer(Exception):  # noqa: N818 (an outcome, named as the other outcomes are)
    """The engine has nothing for this request. `notice` says why."""

    def __init__(self, notice: Notice) -> None:
        super().__init__(notice.key)
        self.notice = notice


def notice_for(error: EngineError) -> Notice:
    """What a person is told about an engine failure: what happened, and what to do about it."""
    text = f"Lacuna: {sentences(error.message, error.remedy)}"
    passes = error.kind in PASSING_KINDS
    is_fault = not passes and error.kind not in REQUEST_KINDS
    # One that went away is started, or looked for, again by itself; if that fails, the engine's state says so.
    is_prominent = not passes and error.kind not in LOSS_KINDS
    return Notice(error.kind, text, prominent=is_prominent, is_fault=is_fault)


def notice_for_state(state: str, message: str) -> Notice:
    """What a person is told when the engine's state changes. Only a lasting fault is worth showing."""
    text = f"Lacuna: {message}" if message else f"Lacuna: the engine is {state}."
    return Notice(state, text, prominent=state in ("missing", "failed"))


def notice_while_failed(why: str, *, is_retried: bool) -> Notice:
    """What a person is told who asks an engine that failed. `why` has the remedy; empty, it is not known."""
    next_try = "it is tried once more now: ask again in a moment" if is_retried else "ask again when that is mended"
    text = sentences(why or "the engine is not available at present", f"nothing was changed; {next_try}")
    return Notice("failed", f"Lacuna: {text}", prominent=True, is_fault=True, is_known=True)


def notice_of_loss(uri: str) -> Notice:
    """What a person is told when a change of a document could not be understood: only they can open it again."""
    name = parts_of(uri).path.rsplit("/", 1)[-1][:_NAME_CHARS] or "a document"
    text = f"the editor sent a change of {name} that cannot be understood; until it is closed and opened again"
    return Notice(f"lost {uri}", f"Lacuna: {text}, nothing is offered there.", prominent=True)


def content_modified() -> JsonRpcException:
    """The reply to a request whose document changed, or was closed, under its work."""
    return JsonRpcContentModified("the text changed while the engine worked; nothing was applied")


def outdated() -> JsonRpcException:
    """The reply to a request for a text that is not there any more."""
    return JsonRpcContentModified("the document has changed since this was made; ask again")


def overtaken(*, by_settings: bool) -> JsonRpcException:
    """The reply to a request that a newer one, or settings that turn Lacuna off, made useless.

    LSP keeps ServerCancelled (-32802) for requests that say they may be cancelled by a server, and these do not.
    """
    cause = "Lacuna was turned off" if by_settings else "a newer request for this document took its place"
    return JsonRpcRequestCancelled(f"{cause}; nothing was applied")


def invalid_params(message: str) -> JsonRpcException:
    """The reply to a request that cannot be understood; `message` says what is wrong with it."""
    return JsonRpcInvalidParams(message)


def describe(error: BaseException) -> str:
    """An unexpected error for the log: type and code locations, never its message, which may quote a document."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    return f"{type(error).__name__} in {places}" if places else type(error).__name__
