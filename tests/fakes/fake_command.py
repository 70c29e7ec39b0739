"""A command `lacuna` that only notes how it was called, and choices made without a person."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.fakes.neovim import Neovim

# A command `lacuna` that notes how it was called, and what came in.
COMMAND = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
text = sys.stdin.read() if "-" in arguments else ""
with (here / "calls.jsonl").open("a") as file:
    file.write(json.dumps([arguments, text]) + "\\n")
{body}
"""


def fake_command(folder: Path, body: str) -> Path:
    """A folder for the path with a command `lacuna` in it that does what `body` says."""
    folder.mkdir()
    script = folder / "lacuna"
    script.write_text(COMMAND.format(python=sys.executable, body=body), encoding="utf-8")
    script.chmod(0o755)
    return folder


def calls(folder: Path) -> list[Any]:
    """How the fake command was called, each time: its arguments and what it read."""
    file = folder / "calls.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def on_path(folder: Path) -> str:
    """Configuration that puts a folder in front of the path."""
    return f"vim.env.PATH = {json.dumps(str(folder))} .. ':' .. vim.env.PATH"


def choosing(editor: Neovim, *numbers: int) -> None:
    """From now on choices are answered by their numbers, in turn; none is made once they are used up."""
    editor.lua(
        """
        local numbers = ...
        _G.asked = {}
        vim.ui.select = function(items, options, choose)
          local format = options.format_item or tostring
          table.insert(_G.asked, { prompt = options.prompt, items = vim.tbl_map(format, items) })
          local number = table.remove(numbers, 1)
          choose(number and items[number], number)
        end
        """,
        list(numbers),
    )
