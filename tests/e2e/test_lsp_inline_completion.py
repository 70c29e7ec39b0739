"""Inline completion at the wire: menu selection, odd documents (cases T-ROB, T-POP)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio


def without_command(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without what the editor runs when one is accepted."""
    return [{name: value for name, value in item.items() if name != "command"} for item in items]


async def test_answers_with_the_engines_text() -> None:
    async with lsp.session({"text": "a + b"}) as client:
        client.open("def add(a, b):\n    return \n")
        assert without_command(await client.inline(1, 11)) == [
            {"insertText": "a + b", "range": lsp.area((1, 11), (1, 11))}
        ]
        (request,) = (await client.engine())["requests"]
        assert request["prefix"] == "def add(a, b):\n    return "
        assert request["suffix"] == "\n"
        assert request["language"] == "python"


@pytest.mark.parametrize(
    ("text", "place"),
    [("\nx = 1", (0, 0)), ("x = 1", (0, 5)), ("x = 1\n", (1, 0)), ("if x:\n    y = 1\n\n", (3, 0))],
)
async def test_the_borders_of_a_document_get_one_answer(text: str, place: tuple[int, int]) -> None:
    async with lsp.session({"text": "z = 2"}) as client:
        client.open(text)
        items = await client.inline(*place)
        assert items is None or items[0]["range"] == lsp.area(place, place)
        (request,) = (await client.engine())["requests"]
        assert request["prefix"] + request["suffix"] == text


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "file:///", "vscode-notebook-cell:/x.ipynb#W0", "file:///never/opened.py"]
)
async def test_a_document_never_opened_is_answered_null(uri: str) -> None:
    async with lsp.session() as client:
        assert await client.inline(0, 0, uri) is None
        assert (await client.engine())["requests"] == []


async def test_an_untitled_document_completes() -> None:
    async with lsp.session({"text": "a + b"}) as client:
        client.open("total = ", "untitled:Untitled-1")
        (item,) = await client.inline(0, 8, "untitled:Untitled-1")
        assert item["insertText"] == "a + b"


async def test_an_item_extends_the_selected_menu_entry_and_keeps_its_range() -> None:
    async with lsp.session({"text": "('hi')"}) as client:
        client.open("pr")
        chosen = {"range": lsp.area((0, 0), (0, 2)), "text": "print"}
        (item,) = without_command(await client.inline(0, 2, selectedCompletionInfo=chosen))
        assert item == {"insertText": "print('hi')", "range": lsp.area((0, 0), (0, 2))}
        # The engine is asked what follows the entry, not what follows the letters typed.
        assert (await client.engine())["requests"][0]["prefix"] == "print"


async def test_nothing_to_extend_a_menu_entry_with_is_no_item() -> None:
    async with lsp.session({"text": ""}) as client:
        client.open("pr")
        chosen = {"range": lsp.area((0, 0), (0, 2)), "text": "print"}
        assert await client.inline(0, 2, selectedCompletionInfo=chosen) is None


async def test_drafts_are_sent_to_those_who_opted_in() -> None:
    reply = {"text": "a + b", "drafts": ["a"]}
    async with lsp.session(reply, options={"drafts": True}) as client:
        client.open("total = ")
        await client.inline(0, 8)
        assert await client.expect("lacuna/draft") == {
            "uri": "file:///w/a.py",
            "version": 1,
            "range": lsp.area((0, 8), (0, 8)),
            "text": "a",
            "settled": 1,
            "step": 1,
            "steps": 1,
        }
    async with lsp.session(reply) as client:
        client.open("total = ")
        await client.inline(0, 8)
        assert (await client.engine())["requests"][0]["wants_drafts"] is False


@pytest.mark.parametrize("text", ["", "\n\n    \r\n"])
async def test_nothing_is_made_up_where_nothing_tells_so_much_as_the_language(text: str) -> None:
    async with lsp.session({"text": "import os"}) as client:
        client.open(text)
        for trigger in (1, 2):
            assert await client.inline(0, 0, triggerKind=trigger) is None
        place = {"textDocument": {"uri": "file:///w/a.py"}, "position": {"line": 0, "character": 0}}
        assert (await client.request("textDocument/completion", place))["items"] == []
        assert (await client.engine())["requests"] == []
        client.open("# Uses os.\n", "file:///w/b.py")
        assert await client.inline(1, 0, "file:///w/b.py", triggerKind=1)


@pytest.mark.parametrize("trigger", [1, 2])
async def test_nothing_is_asked_inside_a_word_that_is_whole(trigger: int) -> None:
    async with lsp.session({"text": "es / total"}) as client:
        client.open("print(x)\n", "file:///w/b.py")
        assert await client.inline(0, 3, "file:///w/b.py", triggerKind=trigger) is None
        client.open("def mean(values):\n    return values\n")
        for column in range(12, 17):
            assert await client.inline(1, column, triggerKind=trigger) is None
        assert (await client.engine())["requests"] == []
        assert await client.inline(1, 17, triggerKind=trigger)


@pytest.mark.parametrize("trigger", [1, 2])
@pytest.mark.parametrize(
    ("text", "said", "offered"),
    [("x = valus", "es / total", None), ("x = valus", "e", "e"), ("x = valus", "(e", None), ("x = valus", "e, ", None)],
)
async def test_inside_a_word_only_what_makes_it_longer_is_offered(
    trigger: int, text: str, said: str, offered: str | None
) -> None:
    async with lsp.session({"text": said}) as client:
        client.open(text)
        items = await client.inline(0, 8, triggerKind=trigger)
        assert [item["insertText"] for item in items or ()] == ([offered] if offered else [])
        assert items is None or items


async def test_a_menu_entry_inside_a_word_is_offered_as_ever() -> None:
    async with lsp.session({"text": "es"}) as client:
        client.open("x = values + values")
        place = lsp.place("file:///w/a.py", 0, 8)
        await client.request("textDocument/completion", place)
        assert len((await client.engine())["requests"]) == 1
