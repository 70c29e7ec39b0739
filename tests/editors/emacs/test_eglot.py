"""Emacs with eglot, in batch mode, with the configuration that the README shows and the real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.configurations import COMMAND, launcher, shown
from tests.rules.sources import ROOT

DRIVE = Path(__file__).with_name("drive.el")
CODE = "def area(w, h):\n    return w\n"


def has_eglot() -> bool:
    """Whether there is an Emacs with eglot, of its own or installed beside it."""
    if shutil.which("emacs") is None:
        return False
    look = ["emacs", "--batch", "--eval", "(progn (require 'package) (package-initialize) (require 'eglot))"]
    return subprocess.run(look, capture_output=True, timeout=60, check=False).returncode == 0


# Where the gate runs, Emacs has been installed.
pytestmark = pytest.mark.skipif("LACUNA_CI" not in os.environ and not has_eglot(), reason="no Emacs with eglot is here")


def emacs(folder: Path, story: str, text: str, *replies: dict[str, Any]) -> Any:
    """What a story of `drive.el` says of `text` in a Python file."""
    script = json.dumps({"replies": list(replies)})
    command = launcher(folder, [sys.executable, "-m", "tests.fakes.scripted_server", script])
    configuration = folder / "init.el"
    configuration.write_text(shown("Emacs", "elisp").replace(COMMAND, str(command)), encoding="utf-8")
    file = folder / "a.py"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["emacs", "--batch", "-l", DRIVE, configuration, file, story],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_code_action_changes_the_text_and_one_undo_takes_it_back(tmp_path: Path) -> None:
    said = emacs(tmp_path, "action", CODE, {"text": "return w * h"})
    assert "Fill selection from surroundings" in said["offered"]
    assert said["text"] == CODE.replace("return w", "return w * h")
    assert said["undone"] == CODE


def test_the_menu_completes_at_the_cursor(tmp_path: Path) -> None:
    said = emacs(tmp_path, "menu", "# é🙂\ntotal = ", {"text": "sum(values)"})
    assert said["text"] == "# é🙂\ntotal = sum(values)"
    assert said["point"] == said["size"]
    # A setting that the configuration makes has arrived.
    assert {request["max_tokens"] for request in said["engine"]["requests"]} == {48}
