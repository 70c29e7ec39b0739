"""What an editor sends for the requests of a protocol case that have a short name: method and params."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.editor_page import Page
from tests.fakes.lsp_actions import selected
from tests.fakes.lsp_messages import area, place
from tests.fakes.protocol_steps import Ask, Span

TRIGGERS = {"invoked": 1, "automatic": 2}
ACTION_TRIGGERS = {"invoked": 1, "automatic": 2}


def request_of(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    """Method and params; anything without a short name is sent as it is said."""
    if ask.what not in SUGAR:
        return ask.what, ask.params
    return SUGAR[ask.what](ask, uri, page)


def _at(ask: Ask, page: Page | None) -> tuple[int, int]:
    return ask.at or (page.cursor if page is not None else (0, 0))


def _area(ask: Ask, page: Page | None) -> dict[str, Any]:
    if ask.span is not None:
        return _lsp(ask.span)
    if page is not None and page.is_selected:
        return _lsp(page.span)
    return area(_at(ask, page), _at(ask, page))


def _lsp(span: Span) -> dict[str, Any]:
    return area(span[:2], span[2:])


def _ghost(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    context: dict[str, Any] = {"triggerKind": TRIGGERS[ask.trigger]}
    if ask.chosen is not None:
        context["selectedCompletionInfo"] = {"range": _lsp(ask.chosen["span"]), "text": ask.chosen["text"]}
    return "textDocument/inlineCompletion", place(uri, *_at(ask, page)) | {"context": context}


def _menu(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    return "textDocument/completion", place(uri, *_at(ask, page))


def _actions(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    context = {"triggerKind": ACTION_TRIGGERS[ask.trigger]} | (ask.context or {})
    problems = [problem | {"range": _lsp(problem["range"])} for problem in context.get("diagnostics", [])]
    return "textDocument/codeAction", selected(_area(ask, page), uri, **context | {"diagnostics": problems})


def _rewrite(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    argument = {"uri": uri, "range": _area(ask, page), "instruction": ask.instruction}
    more = ask.params or {}
    return "workspace/executeCommand", {"command": "lacuna.rewrite", "arguments": [argument]} | more


def _holes(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    spans = [_lsp(span) for span in ask.spans]
    return "lacuna/fillHoles", {"textDocument": {"uri": uri}, "ranges": spans}


def _status(ask: Ask, uri: str, page: Page | None) -> tuple[str, Any]:
    return "workspace/executeCommand", {"command": "lacuna.status"}


SUGAR: dict[str, Callable[[Ask, str, Page | None], tuple[str, Any]]] = {
    "ghost": _ghost,
    "menu": _menu,
    "actions": _actions,
    "rewrite": _rewrite,
    "holes": _holes,
    "status": _status,
}
