"""Ghost text among other texts than plain ASCII with `\n`: columns, line ends, buffers of other kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

ADD = {"replies": [{"text": "(a, b):\n    return a + b"}]}


def test_a_file_with_crlf_keeps_its_line_ends(start: Start, write: Write) -> None:
    path = write("x = 1\r\ny = 2\r\n")
    editor = start(ADD)
    editor.open(path)
    editor.keys("Godef add")
    editor.wait_shown("def add(a, b):")
    assert "^M" not in editor.shot()
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "y = 2", "def add(a, b):", "    return a + b")
    editor.keys("<Esc>:write<CR>")
    editor.wait(lambda: path.read_bytes() == b"x = 1\r\ny = 2\r\ndef add(a, b):\r\n    return a + b\r\n")


@pytest.mark.parametrize("before", ["'😀' + ", "'漢字' + ", "'é' + "])
def test_the_text_stands_right_behind_an_emoji_and_wide_letters(start: Start, write: Write, before: str) -> None:
    editor = start({"replies": [{"text": "value"}]})
    editor.open(write("x = 1\n"))
    editor.keys(f"os = {before}")
    editor.wait_shown("value")
    assert editor.screen()[1] == f"s = {before}value"
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", f"s = {before}value")


def test_tabs_are_as_wide_in_ghost_text_as_in_the_buffer(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "func f() {\n\tif x {\n\t\treturn\t1\n\t}\n}"}]})
    editor.open(write("package p\n\n", "a.go"))
    editor.command("set tabstop=4")
    editor.keys("Gotype T int<CR>")
    editor.wait_shown("func f() {")
    ghost = editor.screen()[3:8]
    editor.keys("<M-a>")
    editor.wait(lambda: len(editor.lines()) > 5)
    assert editor.screen()[3:8] == ghost
    assert "\t\treturn\t1" in editor.lines()


def test_a_hint_in_the_middle_of_a_line_moves_what_is_behind_it(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "first"}]})
    editor.open(write("\tf(, '漢')\n", "a.go"))
    editor.keys("0f(a")
    editor.wait_shown("        f(first, '漢')")
    assert editor.lines() == ["\tf(, '漢')"]


def test_an_untitled_buffer_is_served_once_it_has_a_language(start: Start) -> None:
    editor = start(ADD)
    editor.command("set filetype=python")
    editor.wait_ready()
    editor.keys("idef add")
    editor.wait_shown("def add(a, b):")
    editor.keys("<Tab>")
    editor.wait_lines("def add(a, b):", "    return a + b")


def test_a_second_untitled_buffer_is_not_mixed_up_with_the_first(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.command("set filetype=python")
    editor.wait_ready()
    editor.command("new")
    editor.command("set filetype=python")
    editor.wait(lambda: any("without a name" in text for text in editor.told()))
    assert editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0
    editor.command(f"write {write('', 'b.py').parent / 'c.py'}")
    editor.command("edit")
    editor.wait_ready()


def test_prompts_terminals_and_what_plug_ins_show_are_left_alone(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.open(write("x = 1\n"))
    for kind in ("nofile", "prompt", "acwrite"):
        editor.command("new")
        editor.command(f"set buftype={kind} filetype=python")
        editor.keys("idef add<Esc>")
        editor.settle()
        assert editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0, kind
        editor.command("bwipeout!")
    editor.command("new | terminal cat")
    editor.keys("idef add")
    editor.wait_shown("def add")
    assert editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0
    editor.keys("<C-\\><C-n>:bwipeout!<CR>")
    assert editor.server_request("test/engine")["requests"] == []


def test_a_buffer_that_becomes_a_prompt_is_left_alone_too(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.open(write("x = 1\n"))
    editor.command("set buftype=nofile")
    editor.keys("odef add")
    editor.settle()
    assert "(a, b)" not in editor.shot()
    editor.keys("<Esc>")
    editor.command("set buftype=")
    editor.keys("A")
    editor.wait_shown("def add(a, b):")


def test_a_macro_that_is_played_asks_for_nothing(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.open(write("x = 1\n"))
    editor.lua('vim.fn.setreg("q", "odef add" .. vim.keycode("<Esc>"))')
    editor.keys("@q")
    editor.wait_lines("x = 1", "def add")
    editor.settle()
    assert editor.server_request("test/engine")["requests"] == []
