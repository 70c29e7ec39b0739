"""What Tab does in a real Neovim: it is never stolen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

ADD = {"replies": [{"text": "(a, b):"}]}
BODY = {"replies": [{"text": "return a"}]}


def test_in_leading_white_space_tab_indents_and_the_other_key_accepts(start: Start, write: Write) -> None:
    editor = start(BODY)
    editor.open(write("def add(a):\n    \nx = 1\n"))
    editor.keys("jA")
    editor.wait_shown("    return a")
    editor.keys("<Tab>")
    editor.wait_lines("def add(a):", "        ", "x = 1")
    editor.wait_shown("return a")
    editor.keys("<M-a>")
    editor.wait(lambda: editor.lines()[1].strip() == "return a")


def test_an_open_menu_has_tab_first(start: Start, write: Write) -> None:
    editor = start(ADD, more='vim.keymap.set("i", "<Tab>", function() return vim.fn.pumvisible() == 1 and "<C-n>" '
                             'or "<Tab>" end, { expr = true })')  # fmt: skip
    editor.open(write("address = 1\nadder = 2\n"))
    editor.keys("Goadd<C-x><C-n>")
    editor.wait(lambda: editor.lua("return vim.fn.pumvisible()") == 1)
    chosen = editor.lines()[2]
    editor.keys("<Tab>")
    editor.wait(lambda: editor.lines()[2] != chosen)
    assert editor.lines()[2] in ("add", "adder", "address")
    assert "(a, b):" not in "".join(editor.lines())


def test_the_menus_of_plug_ins_have_tab_first(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.open(write("x = 1\n"))
    editor.keys("odef add")
    editor.wait_shown("def add(a, b):")
    editor.lua('package.loaded["blink.cmp"] = { is_menu_visible = function() return true end }')
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add ")
    editor.lua('package.loaded["blink.cmp"] = nil')
    editor.lua('package.loaded["cmp"] = { core = { view = { visible = function() return true end } } }')
    editor.keys("<BS>(")
    editor.settle()
    assert "(a, b):" not in editor.shot()
    editor.lua('package.loaded["cmp"] = { core = "of another shape" }')
    editor.keys("<BS>(")
    editor.wait_shown("def add(a, b):")


def test_without_ghost_text_the_mapping_from_before_runs(start: Start, write: Write) -> None:
    for before in (
        'vim.keymap.set("i", "<Tab>", "mapped")',
        'vim.keymap.set("i", "<Tab>", function() return "mapped" end, { expr = true })',
        'vim.keymap.set("i", "<Tab>", "<C-r>=\'mapped\'<CR>", { silent = true })',
        'vim.keymap.set("i", "!!", "mapped"); vim.keymap.set("i", "<Tab>", "!!", { remap = true })',
    ):
        editor = start({"replies": [{"text": "("}, {"text": ""}]}, more=before)
        editor.open(write("x = 1\n"))
        editor.keys("odef add")
        editor.wait_shown("def add(")
        editor.keys("<Tab>")
        editor.wait_lines("x = 1", "def add(")
        editor.settle()
        editor.keys("<Tab>")
        editor.wait_lines("x = 1", "def add(mapped")


def test_a_mapping_to_the_plug_name_or_no_keys_at_all_leaves_tab_alone(start: Start, write: Write) -> None:
    own = 'vim.keymap.set("i", "<C-y>", "<Plug>(lacuna-accept)")'
    for options, more in (({}, own), ({"keys": False}, own)):
        editor = start(ADD, options=options, more=more)
        editor.open(write("x = 1\n"))
        editor.keys("odef add")
        editor.wait_shown("def add(a, b):")
        editor.keys("<Tab>")
        editor.wait_lines("x = 1", "def add ")
        editor.keys("<BS>")
        editor.wait_shown("def add(a, b):")
        editor.keys("<C-y>")
        editor.wait_lines("x = 1", "def add(a, b):")
