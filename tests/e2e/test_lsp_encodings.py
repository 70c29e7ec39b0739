"""Encodings and line ends at the wire: what a client's positions mean, and what positions it gets (cases T-ENC).

What is right is worked out by `EditorModel` and Python's codecs, not by the server's own arithmetic.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.editor_model import EditorModel

pytestmark = pytest.mark.asyncio

URI = "file:///w/a.py"
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
ENCODINGS = pytest.mark.parametrize("encoding", list(UNITS))
HALVES = {"high": "\ud83d", "low": "\ude42"}
NEWLINES = {"lf": ("\n", "\n"), "crlf": ("\r\n", "\r\n"), "cr": ("\r", "\r"), "mixed": ("\r\n", "\n")}


def units(text: str, encoding: str) -> int:
    codec, width = UNITS[encoding]
    return len(text.encode(codec)) // width


def with_encodings(encodings: list[str] | None) -> dict[str, Any]:
    """VS Code's capabilities, but with these position encodings."""
    return lsp.VSCODE | {"general": {} if encodings is None else {"positionEncodings": encodings}}


def speaking(encoding: str, *replies: dict[str, Any]) -> AbstractAsyncContextManager[lsp.LspClient]:
    """A session in which positions count in `encoding`."""
    return lsp.session(*replies, capabilities=with_encodings([encoding]))


def applied(text: str, edit: dict[str, Any], encoding: str) -> str:
    """The text after a workspace edit of one document, as an editor applies it."""
    (change,) = edit["documentChanges"]
    editor = EditorModel(text, encoding)
    for each in sorted(change["edits"], key=lambda each: list(each["range"]["start"].values()), reverse=True):
        start, end = (tuple(each["range"][side].values()) for side in ("start", "end"))
        editor.replace(start, end, each["newText"])
    return editor.text


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (["utf-8", "utf-16", "utf-32"], "utf-8"),
        (["utf-16"], "utf-16"),
        (["utf-16", "utf-8"], "utf-16"),
        (["utf-32", "utf-16"], "utf-32"),
        (["utf-7", "utf-32"], "utf-32"),
        (["utf-7"], "utf-16"),
        ([], "utf-16"),
        (None, "utf-16"),
    ],
)
@pytest.mark.parametrize("setting", ["auto", "utf-16"])
async def test_the_clients_first_choice_that_we_can_do_is_taken(
    offered: list[str] | None, expected: str, setting: str
) -> None:
    async with lsp.connection() as client:
        answered = await lsp.initialize(client, with_encodings(offered), {"positionEncoding": setting})
        assert answered["positionEncoding"] == (expected if setting == "auto" else "utf-16")


@ENCODINGS
@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ('s = "🙂" + ', {"utf-8": 13, "utf-16": 11, "utf-32": 10}),
        ("café = '漢字'; y = ", {"utf-8": 22, "utf-16": 17, "utf-32": 17}),
        ("👨‍👩‍👧 = ", {"utf-8": 21, "utf-16": 11, "utf-32": 8}),
        ("\tx = ", {"utf-8": 5, "utf-16": 5, "utf-32": 5}),
    ],
)
async def test_a_column_counts_in_the_negotiated_unit(line: str, columns: dict[str, int], encoding: str) -> None:
    async with speaking(encoding, {"text": "name"}) as client:
        client.open(f"first = 1\n{line}")
        (item,) = await client.inline(1, columns[encoding])
        assert item["range"] == lsp.area((1, columns[encoding]), (1, columns[encoding]))
        assert (await client.engine())["requests"][0]["prefix"].endswith(f"\n{line}")


@ENCODINGS
async def test_both_ends_of_a_menu_entrys_range_are_in_the_unit(encoding: str) -> None:
    head, word = "café = '漢字🙂'; ", "größe𝒙"
    async with speaking(encoding, {"text": "_x"}) as client:
        client.open(head + word)
        end = units(head + word, encoding)
        menu = await client.request("textDocument/completion", lsp.place(URI, 0, end))
        assert menu["items"][0]["textEdit"]["range"] == lsp.area((0, units(head, encoding)), (0, end))


@ENCODINGS
async def test_the_edits_of_a_rewrite_are_in_the_unit(encoding: str) -> None:
    text = "x = 1\nname = '漢字🙂'; old = 1\n"
    async with speaking(encoding, {"text": "name = '漢字🙂'; new = 1\n"}) as client:
        client.open(text)
        argument = {"uri": URI, "range": lsp.area((1, 0), (2, 0)), "instruction": "rename"}
        edit = await client.request("workspace/executeCommand", {"command": "lacuna.rewrite", "arguments": [argument]})
        (hunk,) = edit["documentChanges"][0]["edits"]
        start = units("name = '漢字🙂'; ", encoding)
        assert hunk == {"range": lsp.area((1, start), (1, start + 3)), "newText": "new"}
        assert applied(text, edit, encoding) == "x = 1\nname = '漢字🙂'; new = 1\n"


@ENCODINGS
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = 1\ny = ", (0, 999)),
        ("x = 1\ny = ", (999, 0)),
        ("x = 1\r\ny = ", (0, 2147483647)),
        ("x = 1\ry = ", (2147483647, 2147483647)),
        ("abc", (0, 99)),
        ("ab\ncd", (0, 3)),
        ("ab\r\ncd", (0, 3)),
        ("x🙂", (7, 0)),
        ("x\n", (3, 3)),
        *(("a🙂b", (0, column)) for column in range(7)),
        ("👨‍👩‍👧 = ", (0, 11)),
    ],
)
async def test_a_position_off_the_text_is_pulled_onto_it(text: str, place: tuple[int, int], encoding: str) -> None:
    editor = EditorModel(text, encoding)
    offset = editor.offset_at(*place)
    inside = editor.position_at(offset)
    async with speaking(encoding, {"text": "(value)"}) as client:
        client.open(text)
        items = await client.inline(*place)
        (request,) = (await client.engine())["requests"]
        whole = text.replace("\r\n", "\n").replace("\r", "\n")
        assert request["prefix"] == text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        assert request["prefix"] + request["suffix"] == whole
        assert [item["range"]["start"] for item in items or []] == [lsp.area(inside, inside)["start"]]
        end = items[0]["range"]["end"]
        assert end["line"] == inside[0]
        assert end["character"] <= editor.length(inside[0])


@ENCODINGS
@pytest.mark.parametrize("separator", ["\x0c", "\x0b", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"])
async def test_other_separators_end_no_line(separator: str, encoding: str) -> None:
    async with speaking(encoding, {"text": " + 1"}) as client:
        client.open(f"a = 1{separator}b\nc")
        client.send(lsp.change(2, "Z", lsp.area((1, 0), (1, 1))))
        await client.inline(1, 1)
        assert (await client.engine())["requests"][0]["prefix"] == f"a = 1{separator}b\nZ"


@pytest.mark.parametrize(
    ("text", "span", "inserted", "becomes"),
    [
        ("abc", ((0, 0), (0, 99)), "X", "X"),
        ("abc\ndef", ((0, 1), (0, 99)), "X", "aX\ndef"),
        ("abc\r\ndef", ((0, 99), (1, 0)), "", "abcdef"),
        ("a\rb", ((1, 0), (1, 0)), "\n", "a\r\nb"),
        ("a\r\nb", ((0, 1), (0, 1)), "\r", "a\r\r\nb"),
        ("a\nb", ((5, 0), (9, 9)), "\nc", "a\nb\nc"),
        ("x🙂y", ((0, 2), (0, 3)), "", "xy"),
    ],
)
async def test_an_edit_lands_where_the_editor_makes_it(
    text: str, span: tuple[tuple[int, int], tuple[int, int]], inserted: str, becomes: str
) -> None:
    async with speaking("utf-16", {"text": "(value)"}) as client:
        client.open(text)
        client.send(lsp.change(2, inserted, lsp.area(*span)))
        await client.inline(99, 0)
        assert (await client.engine())["requests"][0]["prefix"] == becomes.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize("newlines", NEWLINES.values(), ids=NEWLINES)
async def test_the_engine_and_inserted_text_know_no_carriage_return(newlines: tuple[str, str]) -> None:
    first, second = newlines
    async with lsp.session({"text": "b = 2\n    return b"}) as client:
        client.open(f"a = 1{first}if a:{second}    {first}")
        (item,) = await client.inline(2, 4, triggerKind=1)
        (request,) = (await client.engine())["requests"]
        assert (request["prefix"], request["suffix"]) == ("a = 1\nif a:\n    ", "\n")
        assert "\r" not in item["insertText"]
        assert item["range"]["start"]["line"] == item["range"]["end"]["line"] == 2


@pytest.mark.parametrize("newlines", NEWLINES.values(), ids=NEWLINES)
async def test_an_edit_has_the_documents_own_line_ends(newlines: tuple[str, str]) -> None:
    own, other = newlines
    text = f"a = 1{own}b = 2{own}c = 3{other}"
    async with lsp.session({"text": "b = 20\nbb = 21\n"}) as client:
        client.open(text)
        argument = {"uri": URI, "range": lsp.area((1, 0), (2, 0)), "instruction": "more"}
        edit = await client.request("workspace/executeCommand", {"command": "lacuna.rewrite", "arguments": [argument]})
        assert (await client.engine())["requests"][0]["selection"] == "b = 2\n"
        assert applied(text, edit, "utf-16") == f"a = 1{own}b = 20{own}bb = 21{own}c = 3{other}"


@ENCODINGS
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
async def test_typing_behind_half_a_character(half: str, encoding: str) -> None:
    line = f"s = '{half}'; y"
    column = len(line) + (2 if encoding == "utf-8" else 0)
    async with speaking(encoding, {"text": "_x = 1"}) as client:
        client.open(f"{line}\n")
        (item,) = await client.inline(0, column)
        assert item["range"]["start"] == {"line": 0, "character": column}
        menu = await client.request("textDocument/completion", lsp.place(URI, 0, column))
        assert menu["items"][0]["textEdit"]["range"] == lsp.area((0, column - 1), (0, column))
        assert (await client.engine())["requests"][0]["prefix"] == "s = '\ufffd'; y"


@ENCODINGS
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
async def test_a_rewrite_of_half_a_character(half: str, encoding: str) -> None:
    text, span = f"s = '{half}'; y\n", lsp.area((0, 0), (1, 0))
    async with speaking(encoding, {"text": "s = 'x'; y\n"}) as client:
        client.open(text)
        params = {"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": []}}
        assert await client.request("textDocument/codeAction", params)
        argument = {"uri": URI, "range": span, "instruction": "mend"}
        edit = await client.request("workspace/executeCommand", {"command": "lacuna.rewrite", "arguments": [argument]})
        assert applied(text, edit, encoding) == "s = 'x'; y\n"
        assert (await client.engine())["requests"][0]["selection"] == "s = '\ufffd'; y\n"


async def test_halves_that_arrive_one_by_one_are_a_character() -> None:
    async with speaking("utf-16", {"text": " + 1"}) as client:
        client.open('s = ""')
        client.send(
            lsp.change(2, "\ud83d", lsp.area((0, 5), (0, 5))),
            lsp.change(3, "\ude42", lsp.area((0, 6), (0, 6))),
        )
        await client.inline(0, 8)
        assert (await client.engine())["requests"][0]["prefix"] == 's = "🙂"'
