"""A minimal editor: speaks LSP to the real server over stdio, holds one text per file, applies what it is given.

Used by `lacuna demo`, so that what it shows went through every part that a real editor uses.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from lsp_server.line_index import LineIndex
from lsp_server.positions import PositionEncoding

ENCODING = PositionEncoding.UTF16
# What the demo opens is its own, also where the folder for temporary files lies in one that git ignores. It shows one
# text, whose numbers come with the last one asked for.
OPTIONS = {"drafts": True, "privacy": {"gitIgnored": True}, "inlineCompletion": {"alternatives": 1}}


@dataclass(frozen=True, slots=True)
class DraftSeen:
    """One `lacuna/draft` notification: the canvas text, how much of it is settled, and the denoising step."""

    text: str
    settled: int
    step: int


class OpenFile:
    """A file open in the editor: its text and version."""

    def __init__(self, path: Path, text: str, language: str) -> None:
        self.uri = path.as_uri()
        self.path = path
        self.text = text
        self.language = language
        self.version = 1

    def position(self, offset: int) -> types.Position:
        """Where `offset` (code points) stands, in the units of the wire."""
        place = LineIndex(self.text).to_position(offset, ENCODING)
        return types.Position(place.line, place.character)

    def offset(self, position: types.Position) -> int:
        """The offset (code points) of a wire position."""
        return LineIndex(self.text).to_offset(position.line, position.character, ENCODING)

    def range(self, start: int, end: int) -> types.Range:
        """The wire range of two offsets."""
        return types.Range(self.position(start), self.position(end))

    def replaced(self, edits: list[types.TextEdit]) -> str:
        """The text after non-overlapping `edits`, all given in positions of the present text."""
        text = self.text
        for edit in sorted(edits, key=lambda edit: self.offset(edit.range.start), reverse=True):
            text = text[: self.offset(edit.range.start)] + edit.new_text + text[self.offset(edit.range.end) :]
        return text


class Editor:
    """A running server and the files open in it."""

    def __init__(self, on_draft: Callable[[DraftSeen], None]) -> None:
        self.client = LanguageClient("lacuna-demo", "0.1.0")
        self.client.feature("lacuna/draft")(lambda params: on_draft(_draft(params)))
        # What the server says is for a log window, which a demo does not have.
        self.client.feature(types.WINDOW_LOG_MESSAGE)(lambda _params: None)
        self.messages: list[str] = []
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))

    async def start(self, root: Path, server_options: list[str], settings: Mapping[str, object] | None = None) -> None:
        """Start `lacuna lsp` and initialize it as an editor would, with `settings` beside the demo's own."""
        await self.client.start_io(sys.executable, "-m", "lsp_server", *server_options)
        await self.client.initialize_async(
            types.InitializeParams(
                capabilities=_capabilities(),
                root_uri=root.as_uri(),
                initialization_options={**OPTIONS, **(settings or {})},
            )
        )
        self.client.initialized(types.InitializedParams())

    async def wait_ready(self, seconds: float) -> None:
        """Wait until the server's engine serves. Raises TimeoutError, or RuntimeError when it cannot start."""
        async with asyncio.timeout(seconds):
            while (status := await self.status())["state"] != "ready":
                if status["state"] == "failed":
                    raise RuntimeError(f"{status.get('message', 'the engine failed')}")
                await asyncio.sleep(0.1)

    async def status(self) -> dict[str, Any]:
        """The `lacuna.status` object."""
        result = await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(command="lacuna.status", arguments=[])
        )
        return dict(plain(result))

    def open(self, file: OpenFile) -> None:
        """didOpen."""
        item = types.TextDocumentItem(file.uri, file.language, file.version, file.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def replace_all(self, file: OpenFile, text: str) -> None:
        """didChange to `text`."""
        file.version += 1
        file.text = text
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(file.version, file.uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def inline_completion(self, file: OpenFile, offset: int) -> list[types.TextEdit]:
        """The first inline completion at `offset`, as edits; none when there is nothing to show."""
        result = await self.client.text_document_inline_completion_async(
            types.InlineCompletionParams(
                context=types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked),
                text_document=types.TextDocumentIdentifier(file.uri),
                position=file.position(offset),
            )
        )
        items = result.items if isinstance(result, types.InlineCompletionList) else result or []
        for item in items:
            text = item.insert_text if isinstance(item.insert_text, str) else item.insert_text.value
            return [types.TextEdit(item.range or file.range(offset, offset), text)]
        return []

    async def code_action(self, file: OpenFile, start: int, end: int, kind: str) -> list[types.TextEdit]:
        """List the actions of `kind` on a selection, resolve the first, and give its edits."""
        listed = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(file.uri),
                file.range(start, end),
                types.CodeActionContext(diagnostics=[], only=[kind]),
            )
        )
        for action in listed or []:
            if isinstance(action, types.CodeAction):
                resolved = await self.client.code_action_resolve_async(action)
                return _edits_of(resolved.edit, file)
        return []

    async def rewrite(self, file: OpenFile, start: int, end: int, instruction: str) -> list[types.TextEdit]:
        """`lacuna.rewrite` on a selection."""
        argument = {
            "uri": file.uri,
            "range": {
                "start": {"line": (first := file.position(start)).line, "character": first.character},
                "end": {"line": (last := file.position(end)).line, "character": last.character},
            },
            "instruction": instruction,
        }
        result = await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(command="lacuna.rewrite", arguments=[argument])
        )
        if result is None:
            return []
        converter = self.client.protocol._converter
        return _edits_of(converter.structure(plain(result), types.WorkspaceEdit), file)

    async def stop(self) -> None:
        """shutdown, exit, and wait for the process."""
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]  # pygls leaves it unannotated


def plain(value: Any) -> Any:
    """What pygls decoded into nested named tuples, as plain mappings and lists."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _draft(params: Any) -> DraftSeen:
    fields = plain(params)
    return DraftSeen(fields["text"], fields["settled"], fields["step"])


def _edits_of(edit: types.WorkspaceEdit | None, file: OpenFile) -> list[types.TextEdit]:
    """The edits of `file`; refused when they were made for another version."""
    edits: list[types.TextEdit] = []
    for change in (edit.document_changes if edit else None) or []:
        if not isinstance(change, types.TextDocumentEdit) or change.text_document.uri != file.uri:
            continue
        if change.text_document.version != file.version:
            raise RuntimeError(f"the edit is for version {change.text_document.version}, the text is {file.version}")
        edits += [item for item in change.edits if isinstance(item, types.TextEdit)]
    return edits


def _capabilities() -> types.ClientCapabilities:
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=["utf-16"]),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
            execute_command=types.ExecuteCommandClientCapabilities(),
        ),
        text_document=types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities(),
            code_action=types.CodeActionClientCapabilities(
                code_action_literal_support=types.ClientCodeActionLiteralOptions(
                    types.ClientCodeActionKindOptions(["refactor.rewrite"])
                ),
                data_support=True,
                resolve_support=types.ClientCodeActionResolveOptions(["edit"]),
            ),
        ),
    )
