"""The project's Python sources, parsed: what the rules look at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Source:
    """One file. `path` is relative to the root, with forward slashes."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        name = self.path.removesuffix(".py").replace("/", ".")
        return name.removesuffix(".__init__")


def sources(*folders: str) -> Iterator[Source]:
    """All Python files below the folders, in a stable order."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            yield Source(path.relative_to(ROOT).as_posix(), text, ast.parse(text))


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of everything imported anywhere in the tree, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            assert node.level == 0, f"line {node.lineno}: relative imports hide where a name comes from"
            yield base, node.lineno
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
