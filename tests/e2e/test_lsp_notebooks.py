"""Notebooks at the wire: cells in their order, whatever happens to them (case T-NB-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

BOOK = "file:///w/x.ipynb"
CODE, MARKDOWN = 2, 1


def cell(name: str, kind: int = CODE) -> dict[str, Any]:
    return {"kind": kind, "document": uri(name)}


def uri(name: str) -> str:
    return f"vscode-notebook-cell:/w/x.ipynb#{name}"


def text_item(name: str, text: str, language: str = "python") -> dict[str, Any]:
    return {"uri": uri(name), "languageId": language, "version": 1, "text": text}


def open_book(client: lsp.LspClient, *items: dict[str, Any]) -> None:
    """A notebook of these texts, in this order."""
    kinds = {item["uri"]: MARKDOWN if item["languageId"] == "markdown" else CODE for item in items}
    cells = [{"kind": kind, "document": name} for name, kind in kinds.items()]
    book = {"uri": BOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
    client.notify("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": list(items)})


def change_book(client: lsp.LspClient, **cells: Any) -> None:
    params = {"notebookDocument": {"uri": BOOK, "version": 2}, "change": {"cells": cells}}
    client.notify("notebookDocument/didChange", params)


async def asked(client: lsp.LspClient, name: str, line: int, character: int) -> tuple[str, str]:
    """Prefix and suffix a completion in a cell goes to the engine with."""
    await client.inline(line, character, uri(name))
    request = (await client.engine())["requests"][-1]
    return request["prefix"], request["suffix"]


AREA = [text_item("A", "import math"), text_item("B", "r = 2"), text_item("C", "area = math.")]


async def test_the_cells_above_are_seen_in_order() -> None:
    async with lsp.session({"text": "pi"}) as client:
        open_book(client, *AREA)
        assert await asked(client, "C", 0, 12) == ("import math\nr = 2\narea = math.", "")
        items = await client.inline(0, 12, uri("C"))
        assert items[0]["insertText"] == "pi"
        assert items[0]["range"] == lsp.area((0, 12), (0, 12))


async def test_cells_below_are_seen_too_and_markdown_as_comments() -> None:
    async with lsp.session({"text": "1"}) as client:
        open_book(
            client,
            text_item("M", "# Circles\n\nTheir area.", "markdown"),
            text_item("A", "r = "),
            text_item("S", "%%sql\nselect 1", "sql"),
            text_item("E", ""),
            text_item("B", "print(r)"),
        )
        assert await asked(client, "A", 0, 4) == (
            "# # Circles\n#\n# Their area.\nr = ",
            "\n# %%sql\n# select 1\nprint(r)",
        )
        prefix, suffix = await asked(client, "M", 2, 11)
        assert prefix == "# Circles\n\nTheir area."
        assert suffix.startswith("\n```python\nr = \n```")


async def test_cells_come_go_and_move() -> None:
    async with lsp.session({"text": "1"}) as client:
        open_book(client, *AREA)
        new = text_item("N", "h = 3")
        change_book(client, structure={"array": {"start": 1, "deleteCount": 0, "cells": [cell("N")]}, "didOpen": [new]})
        assert (await asked(client, "C", 0, 12))[0] == "import math\nh = 3\nr = 2\narea = math."
        gone = {"array": {"start": 0, "deleteCount": 1}, "didClose": [{"uri": uri("A")}]}
        change_book(client, structure=gone)
        assert (await asked(client, "C", 0, 12))[0] == "h = 3\nr = 2\narea = math."
        assert await client.inline(0, 3, uri("A")) is None
        # A move takes a cell out and puts it elsewhere; its text stays open.
        change_book(client, structure={"array": {"start": 0, "deleteCount": 1}})
        change_book(client, structure={"array": {"start": 2, "deleteCount": 0, "cells": [cell("N")]}})
        assert await asked(client, "C", 0, 12) == ("r = 2\narea = math.", "\nh = 3")
        # The editor may also send the whole order anew.
        order = {"array": {"start": 0, "deleteCount": 3, "cells": [cell("N"), cell("C"), cell("B")]}}
        change_book(client, structure=order)
        assert await asked(client, "C", 0, 12) == ("h = 3\narea = math.", "\nr = 2")


async def test_a_cell_s_text_follows_the_editor() -> None:
    async with lsp.session({"text": "1"}) as client:
        open_book(client, *AREA)
        edit = {"range": lsp.area((0, 4), (0, 5)), "text": "30"}
        content = {"document": {"uri": uri("B"), "version": 2}, "changes": [edit]}
        change_book(client, textContent=[content], data=[cell("B")])
        assert (await asked(client, "C", 0, 12))[0] == "import math\nr = 30\narea = math."


async def test_other_files_do_not_see_a_cell_twice_nor_a_cell_itself() -> None:
    async with lsp.session({"text": "1"}) as client:
        open_book(client, text_item("A", "radius_of = circle_area = 1"), text_item("B", "radius_of, circle_area = "))
        assert (await asked(client, "B", 0, 25))[0].count("radius_of = circle_area") == 1
        client.open("radius_of(circle_area, ", "file:///w/b.py")
        await client.inline(0, 23, "file:///w/b.py")
        prefix = (await client.engine())["requests"][-1]["prefix"]
        second, first = "# radius_of, circle_area =", "# radius_of = circle_area"
        assert prefix.startswith(f"# path: x.ipynb\n{second}\n# path: x.ipynb\n{first}")


async def test_a_closed_notebook_is_forgotten() -> None:
    async with lsp.session({"text": "1"}) as client:
        open_book(client, *AREA)
        # Cells the editor does not name are closed too.
        closed = {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": [{"uri": uri("C")}]}
        client.notify("notebookDocument/didClose", closed)
        assert await client.inline(0, 5, uri("C")) is None
        assert await client.inline(0, 5, uri("B")) is None


async def test_a_change_that_makes_no_sense_leaves_no_wrong_text() -> None:
    async with lsp.session({"text": "1"}) as client:
        open_book(client, *AREA)
        change_book(client, structure={"array": "all"})
        assert await client.inline(0, 12, uri("C")) is None
        assert "x.ipynb" in (await client.expect("window/showMessage"))["message"]
        open_book(client, *AREA)
        change_book(client, structure={"array": {"start": 99, "deleteCount": 9, "cells": [cell("X")]}})
        assert (await asked(client, "C", 0, 12))[0] == "import math\nr = 2\narea = math."


async def test_notebooks_of_any_kind_are_asked_for() -> None:
    async with lsp.connection() as client:
        capabilities = await lsp.initialize(client, lsp.VSCODE)
        assert capabilities["notebookDocumentSync"]["notebookSelector"] == [{"notebook": "*"}]
        assert await client.leave() == 0


async def test_a_change_of_nothing_but_a_cells_data_leaves_its_offers() -> None:
    async with lsp.session({"text": "pi"}) as client:
        open_book(client, *AREA)
        await client.inline(0, 12, uri("C"))
        before = len((await client.engine())["requests"])
        change_book(client, data=[cell("C")])
        items = await client.inline(0, 12, uri("C"))
        assert items[0]["insertText"] == "pi"
        assert len((await client.engine())["requests"]) == before
