"""A model by its name or by its path: both sides of the door must call its engine the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.protocol.address import engine_address
from engine.protocol.errors import EngineError
from engine.protocol.model_name import as_written, engine_name, is_path
from lsp_server.engine_spawn import log_path


@pytest.mark.parametrize("name", ["qwen2.5-coder-0.5b", "a", "A-b_c.9"])
def test_a_name_stays_as_it_is(name: str) -> None:
    assert as_written(name) == name
    assert engine_name(name) == name
    assert not is_path(name)


def test_a_path_becomes_absolute_wherever_it_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert as_written("./sdar") == str(tmp_path / "sdar")
    assert as_written(os.path.join("~", "sdar")) == str(tmp_path / "sdar")  # noqa: PTH118
    assert as_written("models/../sdar/") == str(tmp_path / "sdar")
    assert as_written("model.gguf") == str(tmp_path / "model.gguf")


def test_engines_of_different_paths_have_different_addresses(tmp_path: Path) -> None:
    env = {"LACUNA_HOME": str(tmp_path)}
    paths = [str(tmp_path / "a" / "sdar"), str(tmp_path / "b" / "sdar")]
    first, second = (engine_address(path, env) for path in paths)
    assert first != second
    assert first == engine_address(paths[0], env)
    assert engine_name(paths[0]).startswith("sdar-")
    assert log_path(paths[0], env).parent == tmp_path / "state"


@pytest.mark.parametrize("last", ["Odd Name (1)", "..gguf", "x" * 200, "äöü", "-", "a..b", "model.Q4_K_M.gguf"])
def test_any_path_gives_a_name_that_can_be_a_file(tmp_path: Path, last: str) -> None:
    name = engine_name(str(tmp_path / last))
    assert engine_name(name) == name
    assert os.sep not in name
    assert len(name) <= 64


@pytest.mark.parametrize("wrong", ["", "../x", "a/b", "a b", "x" * 65, "a..b"])
def test_what_is_neither_is_refused(wrong: str) -> None:
    with pytest.raises(EngineError) as caught:
        engine_name(wrong)
    assert caught.value.kind == "bad_request"
    assert "path" in caught.value.remedy
