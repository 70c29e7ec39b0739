"""Git itself, without anybody's own settings: what it says is what the server must find without it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(root: Path, *arguments: str, text: str = "") -> str:
    """What git prints in the folder `root`. Raises CalledProcessError when it fails."""
    nobody = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        input=text,
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"], "HOME": str(root)} | nobody | settings,
    )
    return done.stdout
