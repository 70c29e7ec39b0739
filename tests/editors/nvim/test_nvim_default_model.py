"""One story with nothing scripted: the real server, a real engine, and the default model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.neovim import ROOT, Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

LACUNA = [sys.executable, "-m", "engine.cli.main"]
# Loading, and a first conversion, may take a slow machine so long.
MODEL_S = 240.0
CODE = "def area(width, height):\n    return width * height\n\n\ndef perimeter(width, height):\n    return "


@pytest.fixture
def home(model_home: Path) -> Iterator[Path]:
    """A home with the default model, whose engine is stopped afterwards."""
    yield model_home
    environment = {**os.environ, "LACUNA_HOME": str(model_home), "PYTHONPATH": str(ROOT)}
    subprocess.run([*LACUNA, "engine", "stop"], env=environment, check=False, capture_output=True, timeout=60)


def test_ghost_text_a_rewrite_and_a_hole_by_the_default_model(start: Start, write: Write, home: Path) -> None:
    editor = start(options={"cmd": [*LACUNA, "lsp"]}, env={"LACUNA_HOME": str(home)})
    editor.open(write(CODE))
    editor.wait(lambda: _state(editor) == "ready", "no engine came up", MODEL_S)
    editor.keys("GA")
    editor.wait(lambda: editor.lua("return require('lacuna').is_shown()"), "no ghost text", MODEL_S)
    shown = editor.screen()[5]
    assert "width" in shown
    assert editor.lines()[5] == "    return "
    editor.keys("<Tab>")
    editor.wait(lambda: editor.lines()[5] == shown)
    editor.keys("<Esc>ggVj<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("Rename width to w and height to h.<CR>")
    editor.wait(lambda: "change" in editor.shot() and "gla" in editor.shot(), "no rewrite", MODEL_S)
    editor.keys("gla")
    editor.wait(lambda: editor.lines()[0] != CODE.splitlines()[0])
    assert editor.lines()[5] == shown
    editor.keys("u")
    editor.wait(lambda: editor.lines()[0] == CODE.splitlines()[0])
    editor.keys("Go<CR><CR>def double(number):<CR>return <lt>fill><Esc>glf")
    editor.wait(lambda: "<fill>" not in editor.lines()[-1], "the hole was not filled", MODEL_S)
    assert "number" in editor.lines()[-1]


def _state(editor: Neovim) -> str:
    status = editor.server_request("workspace/executeCommand", {"command": "lacuna.status"})
    return str(status["state"]) if status else ""
