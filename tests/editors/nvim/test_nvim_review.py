"""A rewrite among others, in a text that is edited, locked or longer than the screen, in a real Neovim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

BEFORE = ("a = 1", "b = 2", "c = 3")
FIRST = {"kind": "rewrite", "about": "first", "text": "aa = 1\nb = 2\ncc = 3"}
SECOND = {"kind": "rewrite", "about": "second", "text": "b = 'two'"}


def ask(editor: Neovim, keys: str, words: str) -> None:
    """Ask for a rewrite of what `keys` select."""
    editor.keys(f"{keys}<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys(f"{words}<CR>")
    editor.wait_gone("Rewrite:")


@pytest.mark.parametrize("runs", [True, False])
def test_a_new_rewrite_takes_the_place_of_an_older_one(start: Start, write: Write, runs: bool) -> None:
    editor = start({"replies": [FIRST | {"hold": runs}, SECOND]})
    editor.open(write("\n".join(BEFORE) + "\n"))
    ask(editor, "ggVG", "first")
    editor.wait_shown("rewriting" if runs else "2 changes")
    editor.wait(lambda: editor.server_request("test/engine")["requests"])
    ask(editor, "2G", "second")
    editor.wait_shown("1 change ")
    editor.wait_gone("rewriting")
    assert not any("aa = 1" in row or "2 changes" in row for row in editor.screen())
    (told,) = editor.told()
    assert "the new one takes its place" in told
    if runs:
        editor.wait(lambda: editor.server_request("test/engine")["cancelled"])
        editor.server_notify("test/release")
    editor.keys("gla")
    editor.wait_lines("a = 1", "b = 'two'", "c = 3")


def test_a_text_that_became_locked_keeps_its_review(start: Start, write: Write) -> None:
    editor = start({"replies": [FIRST]})
    editor.open(write("\n".join(BEFORE) + "\n"))
    ask(editor, "ggVG", "first")
    editor.wait_shown("2 changes")
    editor.command("setlocal nomodifiable")
    for number, key in enumerate(("gla", "glh"), start=1):
        editor.keys(key)
        editor.wait(lambda n=number: len(editor.told()) == n)  # type: ignore[misc]
        assert "cannot be changed" in editor.told()[-1]
    assert editor.lua("return vim.v.errmsg") == ""
    editor.wait_shown("2 changes")
    editor.command("setlocal modifiable")
    editor.keys("gla")
    editor.wait_lines("aa = 1", "b = 2", "cc = 3")


def test_holes_of_a_text_that_became_locked_stay(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "1", "hold": True}]})
    editor.open(write("x = <fill>\n"))
    editor.keys("glf")
    editor.wait(lambda: editor.server_request("test/engine")["requests"])
    editor.command("setlocal nomodifiable")
    editor.server_notify("test/release")
    editor.wait(lambda: any("cannot be changed" in text for text in editor.told()))
    assert editor.lines() == ["x = <fill>"]
    assert editor.lua("return vim.v.errmsg") == ""


def test_a_refused_rewrite_says_why_and_its_words_are_no_commands(start: Start, write: Write) -> None:
    editor = start({"replies": [FIRST]})
    editor.open(write("\n".join(BEFORE) + "\n"))
    editor.command("setlocal nomodifiable")
    editor.keys("2G<M-r>:setlocal modifiable<CR>")
    editor.wait(editor.told)
    editor.settle()
    (told,) = editor.told()
    assert "cannot be changed" in told
    assert editor.lua("return vim.bo.modifiable") is False


def test_a_text_that_was_read_anew_is_served_after_a_moment(start: Start, write: Write) -> None:
    editor = start({"replies": [FIRST]})
    editor.open(write("\n".join(BEFORE) + "\n"))
    editor.keys(":edit!<CR>ggVG<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("first<CR>")
    editor.wait_shown("2 changes")
    assert editor.told() == []


def test_a_change_goes_at_the_edit_of_its_text(start: Start, write: Write) -> None:
    editor = start({"replies": [FIRST]})
    editor.open(write("\n".join(BEFORE) + "\n"))
    ask(editor, "ggVG", "first")
    editor.wait_shown("2 changes")
    editor.keys("ggcwmine<Esc>")
    editor.wait_shown("1 change ")
    assert not any("aa = 1" in row for row in editor.screen())
    editor.keys("G0cwmine<Esc>")
    editor.wait_gone("1 change ")
    assert editor.lines() == ["mine = 1", "b = 2", "mine = 3"]
    assert len([text for text in editor.told() if "left out" in text]) == 2


@pytest.mark.parametrize("above", [0, 3])
def test_the_keys_stand_at_the_first_line_while_the_end_is_below_the_screen(
    start: Start, write: Write, above: int
) -> None:
    body = [f"v{number} = {number}" for number in range(60)]
    text = "\n".join(["w0 = 0", *body[1:-1], "w59 = 59"])
    editor = start({"replies": [{"kind": "rewrite", "about": "long", "text": text}]})
    editor.open(write("\n".join(["#"] * above + body) + "\n"))
    ask(editor, f"{above + 1}GVGo", "long")
    editor.wait_shown("2 changes")
    assert sum("gla all" in row for row in editor.screen()) == 1
    editor.keys("Gzb<C-e><C-e><C-e><C-e>")
    editor.wait(lambda: "w59" in editor.shot() and sum("gla all" in row for row in editor.screen()) == 1)
    editor.keys("glc")
    editor.wait_gone("gla all")


def test_what_runs_at_a_restart_is_told(start: Start, write: Write) -> None:
    editor = start({"replies": [FIRST | {"hold": True}]})
    editor.open(write("\n".join(BEFORE) + "\n"))
    ask(editor, "ggVG", "first")
    editor.wait_shown("rewriting")
    editor.command("Lacuna restart")
    editor.wait_gone("rewriting")
    editor.wait_ready()
    (told,) = editor.told()
    assert "ended by the restart" in told
