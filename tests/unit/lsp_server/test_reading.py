"""A text is a string or the message is malformed; ranges without a type of their own are read as the typed ones are."""

from __future__ import annotations

import math
from typing import Any

import pytest
from lsprotocol import types

from lsp_server.reading import TEXTS, read_range, text_preserving_converter

AREA = {"start": {"line": 0, "character": 1}, "end": {"line": 2, "character": 0}}
COMPLETE: dict[str, Any] = {"uri": "file:///a", "languageId": "python", "version": 1, "range": AREA}


@pytest.mark.parametrize("kind", TEXTS)
def test_only_a_string_is_a_text(kind: type[Any]) -> None:
    converter = text_preserving_converter()
    assert converter.structure(COMPLETE | {"text": "x = 1"}, kind).text == "x = 1"
    for wrong in (None, 7, True, ["x"], {"x": 1}):
        with pytest.raises(TypeError):
            converter.structure(COMPLETE | {"text": wrong}, kind)


def test_a_change_with_a_range_stays_one() -> None:
    params = {"textDocument": {"uri": "a", "version": 2}, "contentChanges": [{"range": AREA, "text": "x"}]}
    read = text_preserving_converter().structure(params, types.DidChangeTextDocumentParams)
    (change,) = read.content_changes
    assert isinstance(change, types.TextDocumentContentChangePartial)
    assert change.range.end == types.Position(2, 0)


def test_a_range_is_read_whatever_kind_of_number_it_is_in() -> None:
    wanted = types.Range(types.Position(0, 1), types.Position(2, 0))
    assert read_range(AREA) == wanted
    assert read_range({"start": {"line": 0.0, "character": 1.0}, "end": AREA["end"]}) == wanted


@pytest.mark.parametrize("number", [None, "3", True, 1.5, -1, 2**31, math.inf, math.nan, 10**400])
def test_what_is_no_position_is_refused(number: object) -> None:
    with pytest.raises((ValueError, OverflowError)):
        read_range({"start": {"line": 0, "character": number}, "end": AREA["end"]})


@pytest.mark.parametrize("raw", [None, 5, [], {}, {"start": None, "end": None}, {"start": AREA["start"]}])
def test_what_is_no_range_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_range(raw)


@pytest.mark.parametrize(
    ("message", "wanted"),
    [("a", "a"), ({"kind": "markdown", "value": "a"}, "a"), ({"kind": "markdown"}, ""), (None, ""), (5, "")],
)
def test_a_diagnostic_says_its_text_whatever_it_is_written_in(message: object, wanted: str) -> None:
    read = text_preserving_converter().structure({"range": AREA, "message": message, "code": 3}, types.Diagnostic)
    assert (read.message, read.code) == (wanted, 3)
