"""The models a person added in place: the registry file inside the store that remembers them.

Owns that file's reading and writing. The weights stay where they are; nothing here copies or deletes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.protocol.errors import EngineError
from engine.store.registry import Entry, Registry


def read_added(file: Path) -> tuple[Entry, ...]:
    """Entries of the user's registry. Raises EngineError(model_corrupt) when the file cannot be understood."""
    try:
        return Registry.parse(file.read_text(encoding="utf-8")).entries
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError) as error:
        message = f"The list of added models cannot be read: {error}."
        raise EngineError("model_corrupt", message, f"Correct or delete {file}, then add your models again.") from error


def write_added(file: Path, entries: Iterable[Entry]) -> None:
    """Replace the user's registry atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.write_text("\n".join(line for entry in entries for line in _lines(entry)) + "\n", encoding="utf-8")
    part.replace(file)


def _lines(entry: Entry) -> Iterator[str]:
    table = f"models.{_quoted(entry.name)}"
    yield f"[{table}]"
    for key in ("family", "description", "licence"):
        yield f"{key} = {_quoted(getattr(entry, key))}"
    yield f"loadable = {'true' if entry.loadable else 'false'}"
    yield f"location = {_quoted(str(entry.location))}"
    if entry.context_tokens is not None:
        yield f"context_tokens = {entry.context_tokens}"
    for file in entry.files:
        yield f"\n[[{table}.files]]"
        yield f"name = {_quoted(file.name)}"
        yield f"size = {file.size}"
        yield f"sha256 = {_quoted(file.sha256 or '')}"
    yield ""


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's, except that TOML also wants DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
