"""The client's nested capabilities become booleans."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from lsprotocol import types

from lsp_server import capabilities
from lsp_server.capabilities import Capabilities, resolve


def test_a_client_that_says_nothing_can_nothing() -> None:
    assert resolve({}) == Capabilities()


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (
            {"textDocument": {"codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}}},
            "resolves_edits",
        ),
        ({"textDocument": {"codeAction": {"tagSupport": {"valueSet": [1]}}}}, "tags_actions"),
        ({"workspace": {"workspaceEdit": {"documentChanges": True}}}, "versioned_edits"),
        (
            {"textDocument": {"completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [1]}}}}},
            "text_as_is",
        ),
        ({"textDocument": {"codeAction": {"disabledSupport": True}}}, "disables_actions"),
        ({"window": {"workDoneProgress": True}}, "shows_progress"),
        ({"workspace": {"applyEdit": True}}, "applies_edits"),
        ({"workspace": {"configuration": True}}, "pulls_configuration"),
        ({"workspace": {"didChangeConfiguration": {"dynamicRegistration": True}}}, "watches_configuration"),
        ({"experimental": {"lacuna": {"drafts": True}}}, "wants_drafts"),
        ({"experimental": {"lacuna": {"status": True}}}, "wants_status"),
    ],
)
def test_each_boolean_has_its_source(raw: dict[str, Any], field: str) -> None:
    assert asdict(resolve(raw)) == asdict(Capabilities()) | {field: True}


@pytest.mark.parametrize(
    "raw",
    [
        {"textDocument": {"codeAction": {"dataSupport": True}}},
        {"textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}}},
        {"textDocument": {"codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["command"]}}}},
        {"textDocument": {"completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [2]}}}}},
        {"workspace": {"workspaceEdit": {"documentChanges": False}}},
        {"textDocument": {"codeAction": {"honorsChangeAnnotations": True}}},
        {"workspace": {"workspaceEdit": {"changeAnnotationSupport": {}}}},
        {"experimental": {"lacuna": True}},
        {"experimental": [1]},
        {"experimental": {"lacuna": {"drafts": "yes"}}},
    ],
)
def test_half_a_capability_is_none(raw: dict[str, Any]) -> None:
    assert resolve(raw) == Capabilities()


def test_annotations_need_versioned_edits_and_a_client_that_honours_them() -> None:
    honours = {"textDocument": {"codeAction": {"honorsChangeAnnotations": True}}}
    edits = {"workspace": {"workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}}}}
    assert resolve(honours | edits) == Capabilities(versioned_edits=True, annotates_edits=True)
    assert not resolve(edits).annotates_edits


@pytest.mark.parametrize("encodings", [(), ("utf-8", "utf-16"), ("utf-7",)])
def test_encodings_keep_their_order_and_unknown_ones(encodings: tuple[str, ...]) -> None:
    raw = {"general": {"positionEncodings": list(encodings)}}
    assert resolve(raw).position_encodings == encodings


def test_values_of_the_specification_are_those_of_the_specification() -> None:
    assert types.CodeActionTag(capabilities.LLM_GENERATED) is types.CodeActionTag.LlmGenerated
    assert types.InsertTextMode(capabilities.AS_IS) is types.InsertTextMode.AsIs
    assert types.MarkupKind(capabilities.MARKDOWN) is types.MarkupKind.Markdown


@pytest.mark.parametrize("odd", [None, True, 3, "x", [], [3], {"x": 1}])
@pytest.mark.parametrize("member", ["general", "textDocument", "workspace", "window", "experimental"])
def test_what_has_another_shape_counts_as_absent(member: str, odd: Any) -> None:
    assert resolve({member: odd}) == Capabilities()
