"""Fill holes and Fill selection in a real Neovim, and the light bulb's menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
