"""Where Lacuna keeps its files on this machine.

Owns the choice of folders and nothing else: it creates no folder and reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

HOME_VARIABLE = "LACUNA_HOME"


@dataclass(frozen=True, slots=True)
class Paths:
    """Absolute folders; none of them need exist.

    `models` holds weights as they were fetched, `cache` what can be computed again from them, `state` the logs,
    `config` what a person wrote.
    """

    models: Path
    cache: Path
    state: Path
    config: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Paths:
        """The folders of this user; `LACUNA_HOME`, when set and not empty, moves all of them below one folder."""
        home = environ.get(HOME_VARIABLE, "")
        return cls.below(Path(home)) if home else cls._of_platform()

    @classmethod
    def below(cls, home: Path) -> Paths:
        """All folders inside `home`, made absolute so that a daemon with another working folder agrees."""
        root = home.expanduser().absolute()
        return cls(root / "models", root / "cache", root / "state", root / "config")

    @classmethod
    def _of_platform(cls) -> Paths:
        folders = platformdirs.PlatformDirs("lacuna", appauthor=False)
        return cls(
            folders.user_data_path / "models",
            folders.user_cache_path,
            folders.user_state_path,
            folders.user_config_path,
        )
