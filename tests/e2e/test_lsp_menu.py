"""The completion menu at the wire: one entry, incomplete, last, never in the way (cases T-POP-3, T-RACE-7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

URI = "file:///w/a.py"
ALL_DEFAULTS = ["commitCharacters", "editRange", "insertTextFormat", "insertTextMode", "data"]


def capable(defaults: list[str] | None = None, **item: Any) -> dict[str, Any]:
    """An editor whose menu can do this much."""
    menu = {"completionItem": {"insertTextModeSupport": {"valueSet": [1, 2]}} | item}
    if defaults is not None:
        menu["completionList"] = {"itemDefaults": defaults}
    return {"general": {"positionEncodings": ["utf-16"]}, "textDocument": {"completion": menu}}


async def menu(client: lsp.LspClient, line: int, character: int) -> dict[str, Any]:
    result: dict[str, Any] = await client.request("textDocument/completion", lsp.place(URI, line, character))
    assert result["isIncomplete"] is True
    return result


async def test_an_entry_covers_the_word_and_comes_last() -> None:
    async with lsp.session({"text": "int(x)"}) as client:
        client.open("a = 1\npr")
        (item,) = (await menu(client, 1, 2))["items"]
        assert item["filterText"].startswith("pr")
        assert item["textEdit"] == {"range": lsp.area((1, 0), (1, 2)), "newText": "print(x)"}
        assert (item["insertTextFormat"], item["insertTextMode"]) == (1, 1)
        # Servers of a language sort by digits, letters and underscores.
        assert item["sortText"] > "zzzz"
        assert "preselect" not in item
        assert "documentation" not in item


@pytest.mark.parametrize(
    ("text", "column", "says", "inserts", "insert_end", "replace_end"),
    [
        ("pr", 2, "int(x)", "print(x)", 2, 2),
        # What stands behind the cursor and ends the text stays where it is; replacing takes the word's rest.
        ("f(a)", 3, ", b)", "a, b", 3, 3),
        ("total = prfix + 1", 10, "int_pre", "print_pre", 10, 13),
        ("x = gr\u00f6\u00dfe", 6, "een_", "green_", 6, 9),
    ],
)
async def test_inserting_ends_at_the_cursor_and_replacing_takes_the_rest_of_the_word(
    text: str, column: int, says: str, inserts: str, insert_end: int, replace_end: int
) -> None:
    async with lsp.session({"text": says}, capabilities=capable(insertReplaceSupport=True)) as client:
        client.open(text, language="plaintext")
        (item,) = (await menu(client, 0, column))["items"]
        edit = item["textEdit"]
        assert edit["newText"] == inserts
        assert edit["insert"]["start"] == edit["replace"]["start"]
        assert (edit["insert"]["end"], edit["replace"]["end"]) == (
            {"line": 0, "character": insert_end},
            {"line": 0, "character": replace_end},
        )
        start = edit["insert"]["start"]["character"]
        assert item["filterText"].startswith(text[start:column])


async def test_text_that_must_go_goes_either_way() -> None:
    async with lsp.session({"text": "a, b):"}, capabilities=capable(insertReplaceSupport=True)) as client:
        client.open("def f():")
        edit = (await menu(client, 0, 6))["items"][0]["textEdit"]
        line = "def f():"
        for way in ("insert", "replace"):
            span = edit[way]
            changed = line[: span["start"]["character"]] + edit["newText"] + line[span["end"]["character"] :]
            assert changed == "def f(a, b):"


async def test_an_accepted_entry_is_counted_once() -> None:
    async with lsp.session({"text": "int(x)"}) as client:
        client.open("pr")
        (item,) = (await menu(client, 0, 2))["items"]
        # Shown again from memory, it is still the same suggestion.
        (again,) = (await menu(client, 0, 2))["items"]
        assert again["command"] == item["command"]
        assert "int" not in str(item["command"])
        for _ in range(2):
            call = {key: item["command"][key] for key in ("command", "arguments")}
            assert await client.request("workspace/executeCommand", call) is None
        status = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
        assert status["suggestions"] == {"shown": 1, "accepted": 1, "recalled": 1}
    assert client.log == b""


async def test_ghost_text_in_the_menu_keeps_its_ticket() -> None:
    async with lsp.session({"text": "int(x)"}) as client:
        client.open("pr")
        (ghost,) = await client.inline(0, 2)
        (item,) = (await menu(client, 0, 2))["items"]
        assert item["command"] == ghost["command"]


@pytest.mark.parametrize("both", [False, True])
async def test_defaults_are_said_once_for_the_list(both: bool) -> None:
    able = capable(ALL_DEFAULTS, insertReplaceSupport=both)
    async with lsp.session({"text": "int(x)"}, capabilities=able) as client:
        client.open("pr")
        found = await menu(client, 0, 2)
        (item,) = found["items"]
        span = lsp.area((0, 0), (0, 2))
        defaults = found["itemDefaults"]
        assert defaults.pop("data")["uri"] == URI
        assert defaults == {
            "insertTextFormat": 1,
            "insertTextMode": 1,
            "editRange": {"insert": span, "replace": span} if both else span,
        }
        assert item["textEditText"] == "print(x)"
        assert not {"textEdit", "insertTextFormat", "insertTextMode", "data"} & item.keys()


async def test_a_list_without_defaults_has_none() -> None:
    async with lsp.session({"text": "int(x)"}, capabilities=capable(["commitCharacters"])) as client:
        client.open("pr")
        assert "itemDefaults" not in await menu(client, 0, 2)


async def test_defaults_an_editor_does_not_know_are_not_sent() -> None:
    async with lsp.session({"text": "int(x)"}, capabilities=capable(["insertTextMode"])) as client:
        client.open("pr")
        found = await menu(client, 0, 2)
        assert found["itemDefaults"] == {"insertTextMode": 1}
        assert {"textEdit", "insertTextFormat", "data"} <= found["items"][0].keys()


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        (["markdown", "plaintext"], {"kind": "markdown", "value": "```diff\n-    pr\n+    print(x)\n```"}),
        (["plaintext"], {"kind": "plaintext", "value": "-    pr\n+    print(x)"}),
    ],
)
async def test_resolve_shows_the_difference_and_changes_nothing_else(formats: list[str], expected: Any) -> None:
    async with lsp.session({"text": "int(x)"}, capabilities=capable(documentationFormat=formats)) as client:
        client.open("if x:\n    pr\n")
        (item,) = (await menu(client, 1, 6))["items"]
        resolved = await client.request("completionItem/resolve", item)
        assert resolved.pop("documentation") == expected
        assert resolved == item
        client.send(lsp.change(2, "\n", lsp.area((0, 0), (0, 0))))
        assert await client.request("completionItem/resolve", item) == item


async def test_a_fence_is_longer_than_any_in_the_text() -> None:
    async with lsp.session({"text": "```x```"}, capabilities=capable(documentationFormat=["markdown"])) as client:
        client.open("# Use\n\n", language="markdown")
        (item,) = (await menu(client, 2, 0))["items"]
        resolved = await client.request("completionItem/resolve", item)
        assert resolved["documentation"]["value"] == "````diff\n+```x```\n````"


@pytest.mark.parametrize("data", [None, 5, {}, {"uri": URI, "version": 1, "start": 9, "end": 99, "text": "x"}])
async def test_an_entry_that_is_not_ours_is_given_back(data: Any) -> None:
    async with lsp.session() as client:
        client.open("pr")
        item = {"label": "other"} | ({"data": data} if data is not None else {})
        assert await client.request("completionItem/resolve", item) == item


async def test_the_menu_is_not_held_up() -> None:
    options = {"completion": {"deadlineMs": 100}}
    async with lsp.session({"text": "a", "hold": True}, options=options) as client:
        client.open("total = ")
        found = await asyncio.wait_for(menu(client, 0, 8), 30)
        assert found == {"isIncomplete": True, "items": []}
        seen = await client.engine()
        # The engine's own deadline comes first, so that its best text so far still makes it into the menu.
        assert 0 < seen["requests"][0]["deadline_ms"] < 100
        assert seen["cancelled"] == [seen["requests"][0]["id"]]
        client.claim_all("window/logMessage")


async def test_the_entry_stays_while_its_word_is_typed() -> None:
    async with lsp.session({"text": "int(x)"}) as client:
        client.open("pr")
        await menu(client, 0, 2)
        client.send(lsp.change(2, "i", lsp.area((0, 2), (0, 2))))
        (item,) = (await menu(client, 0, 3))["items"]
        assert item["textEdit"] == {"range": lsp.area((0, 0), (0, 3)), "newText": "print(x)"}
        assert len((await client.engine())["requests"]) == 1


async def test_ghost_text_of_one_line_is_an_entry_too() -> None:
    async with lsp.session({"text": "int(x)"}) as client:
        client.open("pr")
        await client.inline(0, 2)
        assert (await menu(client, 0, 2))["items"][0]["textEdit"]["newText"] == "print(x)"
        assert len((await client.engine())["requests"]) == 1


async def test_the_server_says_that_entries_can_be_resolved() -> None:
    async with lsp.connection() as client:
        answered = await lsp.initialize(client, capable())
        assert answered["completionProvider"] == {"resolveProvider": True}
