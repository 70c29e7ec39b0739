"""Fill holes and Fill selection in a real Neovim, and the light bulb's menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

HOLES = "def f(a):\n    b = <fill>\n    c = <fill>\n    return b + c\n"
TWO = [{"kind": "fill", "about": "", "text": "a + 1"}]


def test_two_holes_are_filled_by_one_key_and_one_undo(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "a + 1"}, {"text": "a + 2"}]})
    editor.open(write(HOLES))
    editor.keys("glf")
    editor.wait_lines("def f(a):", "    b = a + 1", "    c = a + 2", "    return b + c")
    editor.wait_gone("Fill")
    editor.keys("u")
    editor.wait_lines(*HOLES.splitlines())


def test_without_holes_nothing_is_asked(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "a + 1"}]})
    editor.open(write("x = 1\n"))
    editor.keys("glf")
    editor.wait(lambda: any("no holes" in text for text in editor.told()))
    assert editor.server_request("test/engine")["requests"] == []


def test_a_selection_is_filled_from_its_surroundings(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "    b = a * 2"}]})
    editor.open(write("def f(a):\n    b = None\n    return b\n"))
    editor.keys("jVglf")
    editor.wait_lines("def f(a):", "    b = a * 2", "    return b")
    editor.keys("u")
    editor.wait_lines("def f(a):", "    b = None", "    return b")


def test_a_fill_can_be_cancelled(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "a + 1", "hold": True}]})
    editor.open(write(HOLES))
    editor.keys("glf")
    editor.wait_shown("Fill 2 holes")
    editor.wait(lambda: editor.server_request("test/engine")["requests"])
    editor.keys("glc")
    editor.wait_gone("Fill 2 holes")
    editor.wait(lambda: editor.server_request("test/engine")["cancelled"])
    assert editor.lines() == HOLES.splitlines()


def test_prepared_actions_stand_in_the_menu_of_code_actions(start: Start, write: Write) -> None:
    text = 'def f(a):\n    """Return a."""\n    return a'
    editor = start({"replies": [{"kind": "rewrite", "text": text}]})
    editor.open(write("def f(a):\n    return a\n"))
    editor.lua("""
    vim.ui.select = function(items, options, choose)
      for _, item in ipairs(items) do
        if options.format_item(item):find("Add docstring", 1, true) then
          choose(item)
        end
      end
    end
    """)
    editor.keys("ggVG")
    editor.lua("vim.lsp.buf.code_action()")
    editor.wait_lines(*text.splitlines())


HALF = {"kind": "rewrite", "about": "first", "text": "aa = 1\nb = <fill>\nc = 4"}


def _rewritten(editor: Neovim, keys: str) -> None:
    """A rewrite of what `keys` select has been asked for."""
    editor.keys(f"{keys}<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("first<CR>")
    editor.wait_gone("Rewrite:")


@pytest.mark.parametrize("runs", [True, False])
def test_a_fill_of_a_selection_takes_the_place_of_a_rewrite_on_its_lines(
    start: Start, write: Write, runs: bool
) -> None:
    editor = start({"replies": [HALF | {"hold": runs}, {"text": "a + 1", "hold": True}]})
    editor.open(write("a = 1\nb = <fill>\nc = 3\n"))
    _rewritten(editor, "ggVG")
    editor.wait_shown("rewriting" if runs else "2 changes")
    editor.wait(lambda: editor.server_request("test/engine")["requests"])
    editor.keys("<Esc>2GVglf")
    editor.wait_shown("Fill")
    editor.wait_gone("rewriting" if runs else "2 changes")
    (told,) = editor.told()
    assert "the fill takes its place" in told
    if runs:
        editor.wait(lambda: editor.server_request("test/engine")["cancelled"])
    editor.server_notify("test/release")
    editor.wait_lines("a = 1", "b = a + 1", "c = 3")
    editor.wait_gone("Fill")
    assert len(editor.told()) == 1


def test_holes_elsewhere_in_the_buffer_leave_a_rewrite_where_it_is(start: Start, write: Write) -> None:
    editor = start({"replies": [{"kind": "rewrite", "about": "first", "text": "a = 11"}, {"text": "a + 1"}]})
    editor.open(write("a = 1\nb = <fill>\nc = 3\n"))
    _rewritten(editor, "ggV")
    editor.wait_shown("1 change ")
    editor.keys("<Esc>glf")
    editor.wait_lines("a = 1", "b = a + 1", "c = 3")
    assert editor.told() == []
    editor.keys("gla")
    editor.wait_lines("a = 11", "b = a + 1", "c = 3")


def test_a_hole_that_is_filled_on_the_lines_of_a_rewrite_takes_its_place(start: Start, write: Write) -> None:
    editor = start({"replies": [HALF, {"text": "a + 1"}]})
    editor.open(write("a = 1\nb = <fill>\nc = 3\n"))
    _rewritten(editor, "ggVG")
    editor.wait_shown("2 changes")
    editor.keys("<Esc>glf")
    editor.wait_lines("a = 1", "b = a + 1", "c = 3")
    editor.wait_gone("2 changes")
    (told,) = editor.told()
    assert "the fill takes its place" in told
