"""Where files are kept, and that LACUNA_HOME moves all of them."""

from __future__ import annotations

from pathlib import Path

from engine.paths import Paths


def test_home_moves_every_folder(tmp_path: Path) -> None:
    paths = Paths.from_environment({"LACUNA_HOME": str(tmp_path)})
    assert {paths.models, paths.cache, paths.state, paths.config} == {
        tmp_path / name for name in ("models", "cache", "state", "config")
    }


def test_relative_home_is_made_absolute() -> None:
    assert Paths.from_environment({"LACUNA_HOME": "here"}).models == Path.cwd() / "here" / "models"


def test_tilde_is_the_users_home() -> None:
    assert Paths.from_environment({"LACUNA_HOME": "~/lacuna"}).cache == Path.home() / "lacuna" / "cache"


def test_empty_home_means_the_platforms_folders() -> None:
    unset, empty = Paths.from_environment({}), Paths.from_environment({"LACUNA_HOME": ""})
    assert unset == empty
    assert all(path.is_absolute() for path in (unset.models, unset.cache, unset.state, unset.config))


def test_looking_creates_nothing(tmp_path: Path) -> None:
    Paths.from_environment({"LACUNA_HOME": str(tmp_path / "new")})
    assert not (tmp_path / "new").exists()
