"""Inline completion at the wire: positions, encodings, menu selection, odd documents (cases T-ENC, T-ROB, T-POP)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

SMILE_LINE = 's = "🙂" + '
SMILE_UNITS = {"utf-16": 11, "utf-8": 13, "utf-32": 10}


def with_encodings(encodings: list[str] | None) -> dict[str, Any]:
    """VS Code's capabilities, but with these position encodings."""
    general = {} if encodings is None else {"positionEncodings": encodings}
    return lsp.VSCODE | {"general": general}


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
    ("encodings", "expected"),
    [
        (["utf-8", "utf-16", "utf-32"], "utf-8"),
        (["utf-16"], "utf-16"),
        (["utf-32", "utf-16"], "utf-32"),
        (["utf-7", "utf-32"], "utf-32"),
        ([], "utf-16"),
        (None, "utf-16"),
    ],
)
async def test_positions_count_in_the_negotiated_encoding(encodings: list[str] | None, expected: str) -> None:
    async with lsp.connection({"text": "name"}) as client:
        answered = await lsp.initialize(client, with_encodings(encodings))
        assert answered["positionEncoding"] == expected
        client.notify("initialized", {})
        client.open(SMILE_LINE)
        column = SMILE_UNITS[expected]
        (item,) = await client.inline(0, column)
        assert item["range"] == lsp.area((0, column), (0, column))
        assert (await client.engine())["requests"][0]["prefix"] == SMILE_LINE
        assert await client.leave() == 0
        client.check()


async def test_a_setting_forces_utf_16() -> None:
    async with lsp.connection() as client:
        options = {"positionEncoding": "utf-16"}
        answered = await lsp.initialize(client, with_encodings(["utf-8", "utf-16"]), options)
        assert answered["positionEncoding"] == "utf-16"


@pytest.mark.parametrize(
    ("text", "asked", "prefix", "answered"),
    [
        ("x = 1\ny = ", (0, 999), "x = 1", (0, 5)),
        ("x = 1\ny = ", (999, 0), "x = 1\ny = ", (1, 4)),
        ("x = 1\ny = ", (0, 2147483647), "x = 1", (0, 5)),
        ("abc", (0, 99), "abc", (0, 3)),
        ("ab\ncd", (0, 3), "ab", (0, 2)),
        ("x🙂", (7, 0), "x🙂", (0, 3)),
        ("👨‍👩‍👧 = ", (0, 11), "👨‍👩‍👧 = ", (0, 11)),
        ("a🙂b", (0, 2), "a", (0, 1)),
        ("a = 1\x0cb\nc", (1, 1), "a = 1\x0cb\nc", (1, 1)),
    ],
)
async def test_positions_outside_are_clamped(
    text: str, asked: tuple[int, int], prefix: str, answered: tuple[int, int]
) -> None:
    async with lsp.session({"text": "(value)"}) as client:
        client.open(text)
        items = await client.inline(*asked)
        assert (await client.engine())["requests"][0]["prefix"] == prefix
        assert [item["range"] for item in items] == [lsp.area(answered, answered)]


async def test_the_engine_never_sees_a_carriage_return() -> None:
    async with lsp.session({"text": "return 1"}) as client:
        client.open("a = 1\r\nif a:\r\n    \r\n")
        (item,) = await client.inline(2, 4)
        (request,) = (await client.engine())["requests"]
        assert "\r" not in request["prefix"] + request["suffix"] + item["insertText"]


@pytest.mark.parametrize(
    ("text", "place"),
    [("", (0, 0)), ("x = 1", (0, 5)), ("x = 1\n", (1, 0)), ("if x:\n    y = 1\n\n", (3, 0))],
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


async def test_a_huge_line_is_left_alone_and_a_long_file_is_windowed() -> None:
    async with lsp.session({"text": "1"}) as client:
        client.open("x = [" + "1, " * 700_000, "file:///w/dense.py")
        assert await client.inline(0, 5, "file:///w/dense.py") is None
        client.open("value = 1\n" * 100_000)
        client.send(lsp.change(2, "y = \n", lsp.area((50_000, 0), (50_000, 0))))
        (item,) = await client.inline(50_000, 4)
        assert item["range"]["start"]["line"] == 50_000
        (request,) = (await client.engine())["requests"]
        assert len(request["prefix"]) <= 4096
        assert len(request["suffix"]) <= 1024


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
