"""`initialize` as JSON in, JSON out: what is said is what lsprotocol's types would say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lsprotocol import converters, types

from lsp_server.frames import to_frame
from lsp_server.handshake import answer, understand
from lsp_server.positions import PositionEncoding
from lsp_server.reception import greet

PARAMS: dict[str, Any] = {"processId": 7, "capabilities": {}, "rootUri": "file:///w"}


def request(**changes: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS} | changes
    return json.dumps({key: value for key, value in message.items() if value != "absent"}).encode()


def test_the_answer_says_nothing_the_protocol_s_types_do_not_know() -> None:
    said = answer(understand(PARAMS))
    converter = converters.get_converter()
    typed = converter.structure(said, types.InitializeResult)
    assert converter.unstructure(typed) == said
    assert typed.capabilities.text_document_sync is not None
    assert isinstance(typed.capabilities.text_document_sync, types.TextDocumentSyncOptions)
    assert typed.capabilities.text_document_sync.change is types.TextDocumentSyncKind.Incremental


def test_the_first_encoding_both_know_is_taken_and_a_setting_forces_one() -> None:
    general = {"general": {"positionEncodings": ["utf-7", "utf-32", "utf-16"]}}
    assert understand(PARAMS | {"capabilities": general}).encoding is PositionEncoding.UTF32
    forced = PARAMS | {"capabilities": general, "initializationOptions": {"positionEncoding": "utf-16"}}
    assert answer(understand(forced))["capabilities"]["positionEncoding"] == "utf-16"


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({"rootUri": "file:///w"}, ("file:///w",)),
        ({"rootUri": None}, ()),
        ({"rootUri": "file:///w", "workspaceFolders": [{"uri": "file:///a", "name": "a"}]}, ("file:///a",)),
        ({"rootUri": "file:///w", "workspaceFolders": []}, ("file:///w",)),
        ({"rootUri": "file:///w", "workspaceFolders": None}, ("file:///w",)),
    ],
)
def test_folders_or_else_the_root(params: dict[str, Any], folders: tuple[str, ...]) -> None:
    assert understand({"capabilities": {}} | params).folders == folders


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"capabilities": None},
        {"capabilities": {}, "processId": "x"},
        {"capabilities": {}, "processId": True},
        {"capabilities": {}, "processId": 10**400},
        {"capabilities": {}, "workspaceFolders": [3]},
        {"capabilities": {}, "workspaceFolders": [{"name": "a"}]},
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(params: Any) -> None:
    with pytest.raises(ValueError, match=r"initialize needs|needs a uri|processId"):
        understand(params)


def test_a_proper_first_message_is_answered_on_its_own() -> None:
    greeting = greet(request(id="one"))
    assert greeting is not None
    assert greeting.handshake == understand(PARAMS)
    assert greeting.reply == to_frame(json.dumps({"jsonrpc": "2.0", "id": "one", "result": answer(understand(PARAMS))}))


def test_options_of_any_size_are_answered() -> None:
    options = {"rewrite": {"maxTokens": 10**400}, "positionEncoding": 10**400}
    greeting = greet(request(params=PARAMS | {"initializationOptions": options}))
    assert greeting is not None
    assert greeting.handshake.encoding is PositionEncoding.UTF16


def test_a_fault_of_ours_leaves_the_message_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_options: object) -> None:
        raise OverflowError

    monkeypatch.setattr("lsp_server.handshake.parse", fail)
    assert greet(request()) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"[]",
        request(jsonrpc="1.0"),
        request(method="shutdown"),
        request(id="absent"),
        request(id=None),
        request(id=True),
        request(id=1.5),
        request(params=None),
        request(params={"capabilities": 3}),
    ],
)
def test_every_other_first_message_is_left_to_the_server(body: bytes) -> None:
    assert greet(body) is None
