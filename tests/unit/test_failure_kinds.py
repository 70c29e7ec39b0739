"""Every kind of failure becomes a message a person can act on: what happened, and what to do about it."""

from __future__ import annotations

import re

import pytest

from engine.protocol import codec
from engine.protocol.errors import FAILURE_KINDS, EngineError
from engine.protocol.framing import HEADER
from engine.protocol.last_words import write_last_words
from engine.protocol.messages import Failed
from lsp_server.errors import PASSING_KINDS, REQUEST_KINDS, notice_for
from lsp_server.sentences import sentences
from tests.fakes.failures import FAILURES
from tests.fakes.running_service import SECRET

# What a program says to itself: a traceback, representations of objects, fields that were not filled in.
TALK = re.compile(r"Traceback|<\w+[^>]* at 0x|\{\w*\}|\bNone\b|__")
# What is done about it is a thing to do, said with one of these words.
DEED = re.compile(
    r"\b(?:ask|raise|put|look|have|set|use|restart|wait|remove|try|select|close|install|choose|fetch|name|pull|free|leave"
    r"|make|greet|report)\b"
)


# An engine that was lost is started, or looked for, again by itself.
LOST = frozenset({"gone", "unreachable"})


def failure_of(kind: str) -> EngineError:
    with pytest.raises(EngineError) as caught:
        FAILURES[kind]()
    return caught.value


@pytest.mark.parametrize("kind", sorted(FAILURE_KINDS))
def test_a_failure_says_what_happened_and_what_to_do(kind: str) -> None:
    error = failure_of(kind)
    assert error.kind == kind
    for part in (error.message, error.remedy):
        assert len(part.split()) >= 2, "a word is no sentence"
        assert not TALK.search(part)
        assert SECRET not in part
        assert part == part.strip()
    assert DEED.search(error.remedy), "a remedy tells what to do"
    assert error.remedy not in error.message


@pytest.mark.parametrize("kind", sorted(FAILURE_KINDS))
def test_it_reaches_a_person_whole(kind: str) -> None:
    error = failure_of(kind)
    told = codec.decode_reply(codec.encode(Failed("7", error.kind, error.message, error.remedy))[HEADER.size :])
    assert isinstance(told, Failed)
    notice = notice_for(EngineError(told.kind, told.message, told.remedy))
    assert notice.text == f"Lacuna: {sentences(error.message, error.remedy)}"
    assert error.message in notice.text
    assert error.remedy[1:] in notice.text
    # What passes by itself, or is mended by itself, is not put in front of a person who only types.
    assert notice.prominent is (kind not in PASSING_KINDS | LOST)
    assert not (notice.is_fault and kind in REQUEST_KINDS | PASSING_KINDS)
    assert error.message in write_last_words(error)
    assert error.remedy in write_last_words(error)
