"""Ghost text in a real Neovim: typed, shown on the screen, accepted, chosen, typed through, dismissed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

ADD = {"text": "(a, b):\n    return a + b"}


def typed(start: Start, write: Write, script: dict[str, Any] | None = None) -> Neovim:
    """An editor in whose second line the head of a function has just been typed."""
    editor = start(script or {"replies": [ADD]})
    editor.open(write("x = 1\n"))
    editor.keys("odef add")
    return editor


def test_what_is_typed_brings_ghost_text_and_tab_puts_it_in(start: Start, write: Write) -> None:
    editor = typed(start, write)
    editor.wait_shown("def add(a, b):")
    assert editor.screen()[1:3] == ["def add(a, b):", "    return a + b"]
    assert editor.lines() == ["x = 1", "def add"]
    assert editor.attribute("(a, b):") != editor.attribute("def add")
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add(a, b):", "    return a + b")
    assert editor.cursor() == (3, len("    return a + b"))
    status = {"command": "lacuna.status"}
    editor.wait(lambda: editor.server_request("workspace/executeCommand", status)["suggestions"]["accepted"] == 1)


def test_one_undo_takes_back_what_was_accepted_and_no_more(start: Start, write: Write) -> None:
    editor = typed(start, write)
    editor.wait_shown("def add(a, b):")
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add(a, b):", "    return a + b")
    editor.keys("  # sum<Esc>u")
    editor.wait_lines("x = 1", "def add(a, b):", "    return a + b")
    editor.keys("u")
    editor.wait_lines("x = 1", "def add")


def test_a_word_then_a_line_then_the_rest(start: Start, write: Write) -> None:
    editor = typed(start, write)
    editor.wait_shown("def add(a, b):")
    editor.keys("<M-Right>")
    editor.wait_lines("x = 1", "def add(")
    editor.wait_shown("def add(a, b):")
    editor.keys("<M-Right>")
    editor.wait_lines("x = 1", "def add(a")
    editor.keys("<M-Down>")
    editor.wait_lines("x = 1", "def add(a, b):")
    assert editor.screen()[2] == "    return a + b"
    editor.keys("<M-Down>")
    editor.wait_lines("x = 1", "def add(a, b):", "    return a + b")


def test_typing_on_through_the_text_needs_no_further_request(start: Start, write: Write) -> None:
    editor = typed(start, write)
    editor.wait_shown("def add(a, b):")
    editor.keys("(a, ")
    editor.wait_lines("x = 1", "def add(a, ")
    assert editor.screen()[1:3] == ["def add(a, b):", "    return a + b"]
    editor.keys("<BS><BS>")
    editor.wait_lines("x = 1", "def add(a")
    assert editor.screen()[1:3] == ["def add(a, b):", "    return a + b"]
    editor.settle()
    assert len(editor.server_request("test/engine")["requests"]) == 1
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add(a, b):", "    return a + b")


def test_another_letter_takes_the_text_away_and_asks_anew(start: Start, write: Write) -> None:
    editor = typed(start, write, script={"replies": [ADD, {"text": "(z)"}]})
    editor.wait_shown("def add(a, b):")
    editor.keys("r")
    editor.wait_shown("def addr(z)")
    assert not any("return" in row for row in editor.screen())


def test_alternatives_are_leafed_through_in_a_circle(start: Start, write: Write) -> None:
    several = {"text": "(a)", "alternatives": ["(b)", "(c)"]}
    editor = typed(start, write, script={"replies": [{"text": "(a)"}, several]})
    editor.wait_shown("def add(a)")
    for key, shown in [("]", "(b) (2/3)"), ("]", "(c) (3/3)"), ("]", "(a) (1/3)"), ("[", "(c) (3/3)")]:
        editor.keys(f"<M-{key}>")
        editor.wait_shown(f"def add{shown}")
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add(c)")


def test_dismissed_text_stays_away_until_something_is_typed(start: Start, write: Write) -> None:
    editor = typed(start, write)
    editor.wait_shown("def add(a, b):")
    editor.keys("<C-]>")
    editor.wait_gone("(a, b)")
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add ")
    editor.keys("<BS>(")
    editor.wait_shown("def add(a, b):")


def test_leaving_insert_mode_takes_the_text_away(start: Start, write: Write) -> None:
    editor = typed(start, write)
    editor.wait_shown("def add(a, b):")
    editor.keys("<Esc>")
    editor.wait_gone("(a, b)")
    assert editor.lines() == ["x = 1", "def add"]


def test_a_bracket_that_was_closed_by_itself_is_shown_around(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "a, b):"}]})
    editor.open(write("x = 1\n"))
    editor.keys("odef add()<Left>")
    editor.wait_shown("def add(a, b):")
    assert editor.lines() == ["x = 1", "def add()"]
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add(a, b):")
    assert editor.cursor() == (2, len("def add(a, b):"))


def test_what_was_typed_while_the_server_started_is_asked_about_once(start: Start, write: Write) -> None:
    editor = start({"replies": [ADD]})
    command = shlex.join(editor.lua("return vim.g.lacuna.cmd"))
    go = editor.home / "go"
    waiting = f"until [ -e {go} ]; do sleep 0.1; done; exec {command}"
    editor.lua("vim.g.lacuna = { cmd = { 'sh', '-c', ... } }", waiting)
    editor.open(write("x = 1\n"), waits=False)
    editor.keys("odef add")
    editor.wait_lines("x = 1", "def add")
    go.touch()
    editor.wait_shown("def add(a, b):")
    assert len(editor.server_request("test/engine")["requests"]) == 1
