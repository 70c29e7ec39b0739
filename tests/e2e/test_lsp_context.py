"""What of other files reaches the engine, and what never does (cases T-PRIV-1 and T-PRIV-2; the text in front)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.git import git

pytestmark = pytest.mark.asyncio

OTHER = "def radius_of(circle_area, precision):\n    return circle_area\n"
HERE = "radius_of(circle_area, "
ABOVE = "# path: b.py\n# def radius_of(circle_area, precision):\n#     return circle_area\n# path: a.py\n"


async def prefix_in(client: lsp.LspClient, line: int, character: int, uri: str = "file:///w/a.py") -> str:
    """What a completion there goes to the engine with, before the cursor."""
    before = len((await client.engine())["requests"])
    await client.inline(line, character, uri)
    requests = (await client.engine())["requests"]
    assert len(requests) == before + 1
    prefix: str = requests[-1]["prefix"]
    return prefix


async def test_other_open_files_come_as_comments() -> None:
    async with lsp.session({"text": "1)"}) as client:
        client.open(OTHER, "file:///w/b.py")
        client.open(HERE)
        assert await prefix_in(client, 0, len(HERE)) == ABOVE + HERE
        client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///w/b.py"}})
        client.send(lsp.change(2, "\n", lsp.area((0, 0), (0, 0))))
        assert await prefix_in(client, 1, len(HERE)) == "\n" + HERE


async def test_they_can_be_turned_off() -> None:
    async with lsp.session({"text": "1)"}, options={"context": {"neighbourTokens": 0}}) as client:
        client.open(OTHER, "file:///w/b.py")
        client.open(HERE)
        assert await prefix_in(client, 0, len(HERE)) == HERE


async def test_the_file_edited_last_comes_first() -> None:
    async with lsp.session({"text": "1)"}) as client:
        for name in "bcd":
            client.open(f"{name} = radius_of(circle_area)\n", f"file:///w/{name}.py")
        client.send(lsp.change(2, "# more\n", lsp.area((1, 0), (1, 0)), "file:///w/c.py"))
        client.open(HERE)
        prefix = await prefix_in(client, 0, len(HERE))
        assert [line for line in prefix.split("\n") if "path" in line] == [
            *("# path: c.py", "# path: d.py", "# path: b.py", "# path: a.py")
        ]


async def test_of_a_long_file_the_part_edited_last_is_looked_at() -> None:
    filler = "# nothing of interest in this line\n" * 2000
    lines = filler.count("\n")
    async with lsp.session({"text": "1)"}) as client:
        client.open(f"{filler}{OTHER}{filler}", "file:///w/b.py")
        client.open(HERE)
        assert await prefix_in(client, 0, len(HERE)) == HERE
        client.send(lsp.change(2, "# more\n", lsp.area((lines, 0), (lines, 0)), "file:///w/b.py"))
        client.send(lsp.change(2, "\n", lsp.area((0, 0), (0, 0))))
        assert "# def radius_of(circle_area, precision):\n" in await prefix_in(client, 1, len(HERE))


async def test_of_a_long_file_the_part_somebody_completed_in_is_looked_at() -> None:
    filler = "# nothing of interest in this line\n" * 2000
    async with lsp.session({"text": "1)"}) as client:
        client.open(f"{filler}{OTHER}", "file:///w/b.py")
        await prefix_in(client, filler.count("\n"), 3, "file:///w/b.py")
        client.open(HERE)
        assert await prefix_in(client, 0, len(HERE)) == ABOVE + HERE


async def test_a_file_of_another_folder_stays_there() -> None:
    async with lsp.session({"text": "1)"}, folders=["file:///w/app", "file:///w/app2"]) as client:
        client.open(OTHER, "file:///w/app/lib/b.py")
        client.open(HERE, "file:///w/app2/a.py")
        client.open(HERE + "\n", "file:///w/app/a.py")
        assert await prefix_in(client, 0, len(HERE), "file:///w/app2/a.py") == HERE
        assert (await prefix_in(client, 0, len(HERE), "file:///w/app/a.py")).startswith("# path: lib/b.py\n")


async def test_a_renamed_file_is_not_shown_under_its_old_name() -> None:
    async with lsp.session({"text": "1)"}) as client:
        client.open(OTHER, "file:///w/old/b.py")
        client.open(HERE)
        files = [{"oldUri": "file:///w/old", "newUri": "file:///w/new"}]
        client.notify("workspace/didRenameFiles", {"files": files})
        assert await prefix_in(client, 0, len(HERE)) == HERE
        client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///w/old/b.py"}})
        client.open(OTHER.replace("precision", "digits"), "file:///w/new/b.py")
        client.open(HERE + " ")
        assert "# path: b.py\n# def radius_of(circle_area, digits):\n" in await prefix_in(client, 0, len(HERE))


async def test_what_is_in_front_rests_while_somebody_types() -> None:
    lines = ["import math", "", "", "class Report:", "    def total(self, shapes):", "        # begin"]
    lines += [f"        value_{number} = math.floor({number})" for number in range(300)]
    async with lsp.session({"text": ""}) as client:
        client.open(OTHER, "file:///w/b.py")
        client.open("\n".join([*lines, "        "]))
        line, prefixes = len(lines), []
        for version, typed in enumerate("total = radius_of(value_1) + value_2", start=2):
            at = (line, 8 + version - 2)
            client.send(lsp.change(version, typed, lsp.area(at, at)))
            prefixes.append(await prefix_in(client, line, at[1] + 1))
        first = prefixes[0]
        assert first.startswith(
            "import math\nclass Report:\n    def total(self, shapes):\n        # ...\n        value_"
        )
        grown = [prefix for prefix in prefixes if prefix.startswith(first)]
        # One step of the window at most, and what is in front stays in front.
        assert len({prefix.split("\n")[4] for prefix in prefixes}) <= 2
        assert len(grown) >= len(prefixes) // 2


SECRETS = [".env", ".env.local", "id_rsa", "x.pem", ".dev.vars", "secrets.yml"]


@pytest.mark.parametrize("name", SECRETS)
async def test_a_secret_is_neither_completed_nor_shown_elsewhere(name: str) -> None:
    async with lsp.session({"text": "1)"}) as client:
        client.open(OTHER, f"file:///w/{name}")
        assert await client.inline(1, 22, f"file:///w/{name}") is None
        assert (await client.engine())["requests"] == []
        client.open(HERE)
        assert await prefix_in(client, 0, len(HERE)) == HERE


async def test_patterns_can_be_added_and_taken_back() -> None:
    options = {"privacy": {"secretFiles": ["b.*"], "openFiles": [".env"]}}
    async with lsp.session({"text": "1)"}, options=options) as client:
        client.open(OTHER, "file:///w/b.py")
        client.open(HERE)
        assert await client.inline(1, 22, "file:///w/b.py") is None
        assert await prefix_in(client, 0, len(HERE)) == HERE
        client.open(OTHER, "file:///w/.env", "python")
        client.open(HERE + " ")
        await prefix_in(client, 1, 22, "file:///w/.env")
        assert (await prefix_in(client, 0, len(HERE))).startswith("# path: .env\n")


@pytest.mark.parametrize("options", [{"disabledFiles": ["b.*"]}, {"disabledLanguages": ["lua"]}])
async def test_what_is_turned_off_is_not_shown_elsewhere(options: dict[str, Any]) -> None:
    async with lsp.session({"text": "1)"}, options=options) as client:
        client.open(OTHER, "file:///w/b.py", "lua")
        client.open(HERE)
        assert await prefix_in(client, 0, len(HERE)) == HERE


@pytest.fixture
def ignored(tmp_path: Path) -> tuple[str, str]:
    """URIs of a file that git ignores and of one it does not, in one repository."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("local_*\n", encoding="utf-8")
    return (tmp_path / "local_b.py").as_uri(), (tmp_path / "a.py").as_uri()


async def test_a_git_ignored_file_is_neither_completed_nor_shown_elsewhere(ignored: tuple[str, str]) -> None:
    local, tracked = ignored
    async with lsp.session({"text": "1)"}) as client:
        client.open(OTHER, local)
        assert await client.inline(1, 22, local) is None
        assert (await client.engine())["requests"] == []
        client.open(HERE, tracked)
        assert await prefix_in(client, 0, len(HERE), tracked) == HERE


async def test_a_file_that_git_tracks_is_completed_though_a_pattern_matches_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name, text in ((".gitignore", "*.py\n"), ("a.py", ""), ("b.py", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    git(tmp_path, "add", "--force", "a.py")
    async with lsp.session({"text": "1)"}) as client:
        for name, comes in (("a.py", True), ("b.py", False)):
            uri = (tmp_path / name).as_uri()
            client.open("round(2.5, ", uri)
            assert bool(await client.inline(0, 11, uri)) is comes


@pytest.mark.parametrize(
    ("privacy", "is_shown"), [({"gitIgnored": True}, False), ({"openFiles": ["local_*.py"]}, True)]
)
async def test_who_wants_to_is_served_in_ignored_files(
    ignored: tuple[str, str], privacy: dict[str, Any], is_shown: bool
) -> None:
    local, tracked = ignored
    async with lsp.session({"text": "1)"}, options={"privacy": privacy}) as client:
        client.open(OTHER, local)
        await prefix_in(client, 1, 22, local)
        client.open(HERE, tracked)
        assert ("local_b.py" in await prefix_in(client, 0, len(HERE), tracked)) is is_shown


async def test_no_text_of_any_file_is_in_the_log() -> None:
    mark = "SECRET_MARK_42"
    text = f"def {mark}(circle_area):\n    return circle_area\n"
    async with lsp.session({"text": f"{mark}()"}, process=True, options={"drafts": False}) as client:
        client.open(text, "file:///w/b.py")
        client.open(f"{mark}(circle_area)\n{mark}\n" + "x = 1\n" * 2000)
        assert mark in await prefix_in(client, 1, len(mark))
        cells = [{"kind": 2, "document": "cell:1"}, {"kind": 2, "document": "cell:2"}]
        texts = [{"uri": f"cell:{n}", "languageId": "python", "version": 1, "text": f"{mark} = {n}"} for n in (1, 2)]
        book = {"uri": "file:///w/x.ipynb", "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
        client.notify("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": texts})
        assert mark in await prefix_in(client, 0, 3, "cell:2")
        client.notify("notebookDocument/didChange", {"notebookDocument": {"uri": book["uri"]}, "change": mark})
        assert mark not in (await client.expect("window/showMessage"))["message"]
        client.notify("workspace/didRenameFiles", {"files": mark})
        client.notify("workspace/didChangeConfiguration", {"settings": {mark: mark}})
        assert mark in (await client.expect("window/logMessage"))["message"]
    assert b"notebookDocument/didChange" in client.log
    assert mark.encode() not in client.log
