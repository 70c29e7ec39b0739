"""Fixtures of the Neovim lane: an editor around a scripted engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.neovim import Neovim, scripted

Start = Callable[..., Neovim]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts Neovims: `start({"replies": [...]})` with a scripted engine, `start(options={...})` with anything."""
    running: list[Neovim] = []

    def make(script: dict[str, Any] | None = None, *, options: dict[str, Any] | None = None, **more: Any) -> Neovim:
        home = tmp_path / f"nvim{len(running)}"
        home.mkdir()
        given = dict(options or {})
        if script is not None:
            given["cmd"] = scripted(script, home)
        editor = Neovim(home, given, **more)
        running.append(editor)
        return editor

    yield make
    for editor in running:
        editor.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file into a project folder of the test's own and returns its path."""
    folder = tmp_path / "project"
    folder.mkdir()

    def make(text: str, name: str = "a.py") -> Path:
        path = folder / name
        path.write_bytes(text.encode())
        return path

    return make
