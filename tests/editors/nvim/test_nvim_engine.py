"""A real Neovim and real engine processes: killed in the middle, and shared by two editors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

STATUS = {"command": "lacuna.status"}
# An engine process around a scripted core, which does what a rewrite's instruction says.
ENGINE = {"idle_limit_s": 60}


@pytest.fixture
def engines(tmp_path: Path) -> Callable[[], list[psutil.Process]]:
    """The engine processes that live in this test's home."""
    home = str(tmp_path / "home")

    def find() -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                is_engine = "tests.fakes.scripted_core" in process.cmdline()
                if is_engine and process.environ().get("LACUNA_HOME") == home:
                    found.append(process)
            except psutil.Error:
                # It ended while it was looked at.
                continue
        return found

    return find


def ready(editor: Neovim) -> dict[str, Any]:
    """The server's status once its engine is ready."""

    def status() -> dict[str, Any]:
        answer = editor.server_request("workspace/executeCommand", STATUS)
        return answer if answer and answer["state"] == "ready" else {}

    return editor.wait(status)


def test_an_engine_killed_in_the_middle_is_told_and_the_next_rewrite_works(
    start: Start, write: Write, tmp_path: Path, engines: Callable[[], list[psutil.Process]]
) -> None:
    editor = start(ENGINE, env={"LACUNA_HOME": str(tmp_path / "home")})
    editor.open(write("x = 1\n"))
    ready(editor)
    editor.keys("<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("steps=0 delay=0.05 text=never<CR>")
    editor.wait_shown("ne")
    (engine,) = engines()
    engine.kill()
    editor.wait_gone("rewriting")
    assert editor.lines() == ["x = 1"]
    assert editor.attribute("x = 1") == editor.attribute("= 1")
    ready(editor)
    editor.keys("<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("steps=2 text=again<CR>")
    editor.wait_shown("1 change")
    editor.keys("gla")
    editor.wait_lines("again")
    for process in engines():
        process.kill()


def test_two_editors_share_one_engine(
    start: Start, write: Write, tmp_path: Path, engines: Callable[[], list[psutil.Process]]
) -> None:
    editors = [start(ENGINE, env={"LACUNA_HOME": str(tmp_path / "home")}) for _ in range(2)]
    for number, editor in enumerate(editors):
        editor.open(write(f"x = {number}\n", f"{number}.py"))
    pids = {ready(editor)["facts"]["pid"] for editor in editors}
    for editor in editors:
        editor.keys("<M-r>")
        editor.wait_shown("Rewrite:")
        editor.keys("steps=2 text=done<CR>")
    for editor in editors:
        editor.wait_shown("1 change")
        editor.keys("gla")
        editor.wait_lines("done")
    assert pids == {engine.pid for engine in engines()}
    assert len(pids) == 1
    for process in engines():
        process.kill()
