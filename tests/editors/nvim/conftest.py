"""Fixtures of the Neovim lane: an editor around a scripted engine.

The lane runs on Linux only: nowhere else does a package bring Neovim.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.fakes.neovim import Neovim


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """What imports Neovim's package is not even looked at where there is none."""
    return True if sys.platform != "linux" and collection_path.name.startswith("test_nvim") else None


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Neovim]]:
    """Starts Neovims: `start({"replies": [...]})` with a scripted engine, `start(options={...})` with anything."""
    from tests.fakes.neovim import Neovim, scripted

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
