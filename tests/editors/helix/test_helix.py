"""Helix in a terminal, with the configuration that the README shows and the real server."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.configurations import COMMAND, launcher, shown
from tests.editors.terminal import Terminal
from tests.rules.sources import ROOT

HELIX = os.environ.get("LACUNA_HELIX") or shutil.which("hx")
FILL = "Fill selection from surroundings"
CODE = "def area(w, h):\n    return w\n"

# Debian has it from 13 on; where the gate runs it is fetched, if it can be had.
pytestmark = pytest.mark.skipif(HELIX is None, reason="no Helix is here")


def helix(folder: Path, text: str, *replies: dict[str, Any]) -> Terminal:
    """Helix with `text` in a Python file, once the server has something to offer for its first line."""
    assert HELIX is not None
    script = json.dumps({"replies": list(replies)})
    command = launcher(folder, [sys.executable, "-m", "tests.fakes.scripted_server", script])
    configuration = folder / "config" / "helix" / "languages.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(shown("Helix", "toml").replace(COMMAND, str(command)), encoding="utf-8")
    file = folder / "a.py"
    file.write_text(text, encoding="utf-8")
    env = os.environ | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    program = Terminal([HELIX, str(file)], folder, env)
    assert program.sees("NOR"), program.screen
    for _ in range(60):
        program.press("ggx a")
        if program.sees(FILL, 2.0):
            # Not Escape: with a key right behind it that is another key. Without a menu this is another one, too.
            program.press("\x03")
            assert program.sees_no(FILL), program.screen
            return program
    raise AssertionError(program.screen)


def test_a_code_action_changes_the_text_and_one_undo_takes_it_back(tmp_path: Path) -> None:
    with helix(tmp_path, CODE, {"text": "return w * h"}) as program:
        program.press("ggjx a")
        assert program.sees(FILL), program.screen
        program.press("\r")
        assert program.sees("w * h"), program.screen
        program.press(":w\r")
        assert program.sees("written"), program.screen
        assert (tmp_path / "a.py").read_text() == CODE.replace("return w", "return w * h")
        program.press("u:wq\r")
        assert program.end() == 0
    assert (tmp_path / "a.py").read_text() == CODE


def test_the_menu_completes_at_the_cursor(tmp_path: Path) -> None:
    text = "# é🙂\nvalues = [1]\n"
    with helix(tmp_path, text, {"text": "sum(values)"}) as program:
        program.press("geototal = \x18")
        assert program.sees("sum(values)"), program.screen
        program.press("\t\r")
        assert program.sees("total = sum(values)"), program.screen
        program.press("\x1b")
        assert program.sees("NOR"), program.screen
        program.press(":wq\r")
        assert program.end() == 0
    assert (tmp_path / "a.py").read_text() == f"{text}total = sum(values)\n"
