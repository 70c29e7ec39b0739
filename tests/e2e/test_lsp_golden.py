"""The golden cases through the whole server: what the engine says, and the document after the editor accepts it.

`tests/golden` proves the text rules alone; here the same cases pass positions, snapshots, edits and the wire.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lsp_server.line_index import LineIndex
from lsp_server.positions import PositionEncoding, TextPosition
from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

CASES = Path(__file__).parents[1] / "golden" / "cases"
NEWLINES = pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
ENCODING = PositionEncoding.UTF16


def cases(*names: str) -> list[dict[str, Any]]:
    """The cases of these files that a client can ask for: it cannot say how many lines it wants.

    In a document of blanks the engine is not asked.
    """
    loaded = [case for name in names for case in tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]]
    return [case for case in loaded if "single_line" not in case and case["document"].strip("‸ \t\n")]


def in_style(text: str, newline: str) -> str:
    return text.replace("⇥", "\t").replace("\n", newline)


def wire(text: str, offset: int) -> tuple[int, int]:
    place = LineIndex(text).to_position(offset, ENCODING)
    return place.line, place.character


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """The text after edits of it, as an editor applies them."""
    index = LineIndex(text)

    def offset(place: dict[str, int]) -> int:
        return index.offset_at(TextPosition(place["line"], place["character"]), ENCODING)

    for edit in sorted(edits, key=lambda edit: offset(edit["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


@NEWLINES
async def test_every_suggestion_accepted_gives_the_document_wanted(newline: str) -> None:
    asked = [(case, said) for case in cases("indentation", "overlap", "surroundings") for said in case["says"]]
    wrong = []
    async with lsp.session(*({"text": said.replace("⇥", "\t")} for _, said in asked)) as client:
        for number, (case, said) in enumerate(asked):
            uri = f"untitled:{number}"
            before, after = in_style(case["document"], newline).split("‸")
            client.open(before + after, uri, case["language"])
            trigger = 2 if case.get("automatic", True) else 1
            items = await client.inline(*wire(before + after, len(before)), uri, triggerKind=trigger)
            result = None
            if items:
                # Editors give inserted text the buffer's own line ends.
                own = newline if newline in before + after else "\n"
                edit = {"range": items[0]["range"], "newText": items[0]["insertText"].replace("\n", own)}
                result = applied(before + after, [edit])
            wanted = in_style(case["becomes"], "\n") if "becomes" in case else None
            if (result.replace("\r\n", "\n") if result is not None else None) != wanted:
                wrong.append((case["name"], said, result))
    assert len(asked) > 50
    assert wrong == []


@NEWLINES
async def test_every_rewrite_applied_gives_the_document_wanted(newline: str) -> None:
    asked = [(case, said) for case in cases("rewrite") for said in case["says"]]
    wrong = []
    async with lsp.session(*({"text": said.replace("⇥", "\t")} for _, said in asked)) as client:
        for number, (case, said) in enumerate(asked):
            uri = f"untitled:{number}"
            before, rest = in_style(case["document"], newline).split("⟦")
            selected, after = rest.split("⟧")
            text = before + selected + after
            client.open(text, uri, case["language"])
            span = lsp.area(wire(text, len(before)), wire(text, len(before + selected)))
            argument = {"uri": uri, "range": span, "instruction": "improve"}
            command = {"command": "lacuna.rewrite", "arguments": [argument]}
            edit = await client.request("workspace/executeCommand", command)
            result = None
            if edit is None:
                await client.expect("window/showMessage")
            else:
                (change,) = edit["documentChanges"]
                assert change["textDocument"] == {"uri": uri, "version": 1}
                result = applied(text, change["edits"])
            own = newline if newline in text else "\n"
            wanted = in_style(case["becomes"], own) if "becomes" in case else None
            if result != wanted:
                wrong.append((case["name"], said, result))
    assert len(asked) > 10
    assert wrong == []
