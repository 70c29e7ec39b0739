"""Neovim's own ghost text (0.12 and newer), with this plug-in's keys. `.ci/nvim-next` runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.neovim import NVIM, Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

ADD = {"replies": [{"text": "(a, b):\n    return a + b"}]}


def version() -> tuple[int, int]:
    """Major and minor version of the Neovim under test."""
    said = subprocess.run([NVIM, "--version"], capture_output=True, encoding="utf-8", check=True).stdout
    major, minor, _ = said.splitlines()[0].removeprefix("NVIM v").split(".", 2)
    return int(major), int(minor)


pytestmark = pytest.mark.skipif(
    version() < (0, 12), reason="this Neovim has no vim.lsp.inline_completion; `.ci/nvim-next` brings one that has"
)


@pytest.mark.parametrize("how", ["option", "call"])
def test_neovim_shows_it_once_and_the_keys_accept_it(start: Start, write: Write, how: str) -> None:
    options = {"builtin_ghost_text": True} if how == "option" else {}
    more = "" if how == "option" else "vim.lsp.inline_completion.enable()"
    editor = start(ADD, options=options, more=more)
    editor.open(write("x = 1\n"))
    editor.keys("odef add")
    editor.wait_shown("def add(a, b):")
    assert [row for row in editor.screen() if "return" in row] == ["    return a + b"]
    editor.keys("<M-Right>")
    editor.wait_lines("x = 1", "def add(")
    editor.wait_shown("def add(a, b):")
    editor.keys("<Tab>")
    editor.wait_lines("x = 1", "def add(a, b):", "    return a + b")
    editor.keys("<Esc>u")
    editor.wait_lines("x = 1", "def add(")


def test_without_being_asked_the_plug_in_shows_it_itself(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.open(write("x = 1\n"))
    editor.keys("odef add")
    editor.wait_shown("def add(a, b):")
    assert [row for row in editor.screen() if "return" in row] == ["    return a + b"]
