"""The configurations that the README shows, so that what is tested is what people copy."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
# What stands for the command in the README.
COMMAND = "/path/to/.venv/bin/lacuna"


def shown(heading: str, language: str) -> str:
    """The first block of code in `language` behind the paragraph that begins with **heading**. Raises ValueError."""
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"^\*\*{re.escape(heading)}\*\*.*?^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"the README shows no {language} for {heading}")
    return found[1]


def launcher(folder: Path, command: list[str]) -> Path:
    """An executable in `folder` that runs `command` with whatever it is given, as `lacuna` would be run."""
    path = folder / "lacuna"
    path.write_text("#!/bin/sh\nexec " + " ".join(f"'{part}'" for part in command) + ' "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path
