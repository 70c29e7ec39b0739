"""What an editor asks of code actions and the rewrite command, and how it applies the edits that come back."""

from __future__ import annotations

from typing import Any

from tests.fakes.editor_model import EditorModel
from tests.fakes.lsp_client import VSCODE, LspClient

URI = "file:///w/a.py"

# VS Code with what vscode-languageclient 10.1 adds for edits: annotations, disabled actions, progress.
CONFIRMING: dict[str, Any] = VSCODE | {
    "textDocument": VSCODE["textDocument"]
    | {
        "codeAction": VSCODE["textDocument"]["codeAction"]
        | {"disabledSupport": True, "isPreferredSupport": True, "honorsChangeAnnotations": True}
    },
    "workspace": {"workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}}},
    "window": {"workDoneProgress": True},
}


def selected(span: dict[str, Any], uri: str = URI, **context: Any) -> dict[str, Any]:
    """Params of codeAction."""
    return {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []} | context}


def rewrite_call(span: dict[str, Any], instruction: str = "tidy", **more: Any) -> dict[str, Any]:
    """Params of executeCommand."""
    argument = {"uri": URI, "range": span, "instruction": instruction} | more
    return {"command": "lacuna.rewrite", "arguments": [argument]}


async def actions(client: LspClient, span: dict[str, Any], **context: Any) -> list[dict[str, Any]]:
    """What is offered."""
    listed: list[dict[str, Any]] = await client.request("textDocument/codeAction", selected(span, **context))
    return listed


async def action(client: LspClient, name: str, span: dict[str, Any], **context: Any) -> dict[str, Any]:
    """The offered action whose kind ends with `name`."""
    listed = await actions(client, span, **context)
    return next(item for item in listed if item["kind"].endswith(f".{name}"))


async def edit_of(client: LspClient, name: str, span: dict[str, Any], **context: Any) -> dict[str, Any]:
    """The edit of the action whose kind ends with `name`."""
    offered = await action(client, name, span, **context)
    edit: dict[str, Any] = (await client.request("codeAction/resolve", offered))["edit"]
    return edit


def text_edits(edit: dict[str, Any]) -> list[dict[str, Any]]:
    """The edits of the one document that a WorkspaceEdit changes, from the last to the first."""
    (change,) = edit["documentChanges"]
    return sorted(change["edits"], key=_start, reverse=True)


def apply(text: str, edit: dict[str, Any], *, without: int | None = None, encoding: str = "utf-16") -> str:
    """The text after an edit, as an editor applies it; `without` leaves out one change, counted from 0."""
    editor = EditorModel(text, encoding)
    changes = text_edits(edit)
    if without is not None:
        del changes[len(changes) - 1 - without]
    for change in changes:
        editor.replace(_start(change), _end(change), change["newText"])
    return editor.text


def _start(change: dict[str, Any]) -> tuple[int, int]:
    return change["range"]["start"]["line"], change["range"]["start"]["character"]


def _end(change: dict[str, Any]) -> tuple[int, int]:
    return change["range"]["end"]["line"], change["range"]["end"]["character"]


async def act_call(client: LspClient, through: str, span: dict[str, Any]) -> dict[str, Any]:
    """A rewrite of `span`, not yet sent: `through` "resolve" an action is picked, through "command" it is asked for."""
    if through == "resolve":
        return client.call("codeAction/resolve", await action(client, "simplify", span))
    return client.call("workspace/executeCommand", rewrite_call(span))
