"""Protocol cases from TOML: what each is about, how its session begins, and the steps that are taken.

A case with `variant` tables is played once for each: `$name` in any of its strings is what the variant says `name` is
(a string that is nothing else may become any value). Nothing is shared between cases: each is to be read by itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.protocol_parsing import parse_turn, typed
from tests.fakes.protocol_steps import Turn


@dataclass(frozen=True, slots=True)
class Setup:
    """How a session begins.

    * `says`: the engine's answers, in order; the last one stays.
    * `encodings`: what the editor offers; `["absent"]` for nothing said.
    * `client`: vscode, confirming (what VS Code adds for edits) or pulling (can be asked for settings, has folders);
      `capabilities` is laid over it.
    * `answered`: a pattern of what the server answers to `initialize`.
    * `settings`: what the editor answers to a pull, see `Configure`.
    * `files`: written to a folder that is called `$root`.
    * `link`: local (the same bytes, in this process) or process.
    * `engine`: scripted, service (a real engine's service around a scripted core, in this process) or daemon (the same
      in a process of its own, started by the server).
    * `paced`: the pauses between keys are those of the default settings. A local server's clock stands still but for
      the step `pass`.
    """

    says: tuple[dict[str, Any], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    encodings: tuple[str, ...] = ("utf-16",)
    client: str = "vscode"
    capabilities: dict[str, Any] = field(default_factory=dict)
    answered: dict[str, Any] | None = None
    folders: tuple[str, ...] = ()
    settings: dict[str, Any] | None = None
    files: dict[str, str] = field(default_factory=dict)
    state: str = "ready"
    state_after_start: str = "ready"
    link: str = "local"
    engine: str = "scripted"
    idle_limit_s: float = 0.0
    editors: int = 1
    paced: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One case, or one variant of it. `editors_half` is what only an editor's plug-in can show, `beyond` what is not
    shown here and where it is."""

    id: str
    name: str
    about: str
    setup: Setup
    turns: tuple[Turn, ...]
    editors_half: str
    beyond: str

    @property
    def label(self) -> str:
        return f"{self.id}: {self.about}" + (f" ({self.name})" if self.name else "")


CASE_KEYS = {"id", "about", "setup", "steps", "variant", "editors_half", "beyond"}


def load(path: Path) -> Iterator[Case]:
    """The cases of a file. Raises ValueError for a case that says something nobody understands."""
    for entry in tomllib.loads(path.read_text("utf-8"))["case"]:
        if unknown := entry.keys() - CASE_KEYS:
            raise ValueError(f"{path.name}, {entry.get('id')}: {sorted(unknown)} is no key of a case")
        for variant in entry.get("variant", [{}]):
            try:
                yield _case(entry, variant)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path.name}, {entry['id']}: {error}") from error


def _case(entry: Mapping[str, Any], variant: Mapping[str, Any]) -> Case:
    values = dict(variant)
    name = str(values.pop("name", ""))
    setup, steps = (substituted(entry.get(key, empty), values) for key, empty in (("setup", {}), ("steps", [])))
    return Case(
        id=entry["id"],
        name=name,
        about=entry["about"],
        setup=typed(Setup, setup),
        turns=tuple(parse_turn(step) for step in steps),
        editors_half=entry.get("editors_half", ""),
        beyond=entry.get("beyond", ""),
    )


def substituted(node: Any, values: Mapping[str, Any]) -> Any:
    """`node` with every `$name` of `values` put in."""
    if isinstance(node, Mapping):
        return {key: substituted(value, values) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [substituted(value, values) for value in node]
    if not isinstance(node, str):
        return node
    for name in sorted(values, key=len, reverse=True):
        if node == f"${name}":
            return values[name]
        node = node.replace(f"${name}", str(values[name]))
    return node
