"""What Neovim's command line says, and that it never stops the editor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

LONG = "the model cannot be read, " * 20 + "the end"


@pytest.mark.parametrize("text", [LONG, "the model cannot be read\nline two\nthe end"])
def test_a_long_message_leaves_the_editor_free_and_is_whole_in_messages(start: Start, write: Write, text: str) -> None:
    editor = start({"replies": [{"kind": "rewrite", "error": ["out_of_memory", text, "close something"]}]})
    editor.open(write("x = 1\n"))
    editor.lua("vim.notify = _G.builtin_notify")
    editor.keys("<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("words<CR>")
    editor.wait_shown("cannot be read")
    assert "Press ENTER" not in editor.shot()
    assert editor.lua("return vim.api.nvim_get_mode().mode") == "n"
    editor.wait(lambda: "rewriting" not in editor.shot())
    assert editor.screen()[-1].endswith("…")
    messages = str(editor.lua("return vim.fn.execute('messages')"))
    assert text.replace("\n", "") in messages.replace("\n", "")


def test_a_short_message_is_not_cut(start: Start, write: Write) -> None:
    editor = start({"replies": []})
    editor.open(write("x = 1\n"))
    editor.lua("vim.notify = _G.builtin_notify")
    editor.command("Lacuna snooze 1")
    editor.wait_shown("no ghost text for 1 minute; `:Lacuna resume` ends that")
    assert "…" not in editor.shot()


def test_nothing_to_do_is_said(start: Start, write: Write) -> None:
    editor = start({"replies": []})
    editor.open(write("x = 1\n"))
    editor.command("Lacuna holes")
    editor.wait(lambda: any("no holes" in text for text in editor.told()))
    editor.command("Lacuna model stop")
    assert "no model is being fetched" in editor.told()[-1]


def test_a_buffer_without_a_filetype_says_what_to_do(start: Start, write: Write) -> None:
    editor = start({"replies": []})
    editor.command(f"edit {write('x = 1', 'plain')}")
    editor.keys("<M-r>")
    editor.wait(lambda: any(":setf" in text for text in editor.told()))
