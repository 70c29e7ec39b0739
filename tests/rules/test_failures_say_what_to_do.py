"""Wherever the product makes a failure, it has a kind that exists and words for a person; no kind is only a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.protocol.errors import FAILURE_KINDS
from tests.rules.sources import Source, sources

# By class, the places of kind, message and remedy.
_WORDS = {"EngineError": (0, 1, 2), "Failed": (1, 2, 3)}


def made(source: Source) -> Iterator[tuple[str, list[ast.expr]]]:
    """(place, kind message remedy) of every failure that is made with all three in place."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WORDS:
            places = _WORDS[node.func.id]
            if len(node.args) > max(places):
                yield f"{source.path}:{node.lineno}", [node.args[place] for place in places]


def said(node: ast.expr) -> list[str]:
    """The texts a node may be, as far as they stand there."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)]  # type: ignore[misc]
    if isinstance(node, ast.IfExp):
        return said(node.body) + said(node.orelse)
    return []


def test_every_failure_has_a_kind_that_exists_and_words() -> None:
    found = [each for source in sources("engine", "lsp_server") for each in made(source)]
    wrong = []
    for place, (kind, *words) in found:
        wrong += [f"{place}: {text!r} is no kind" for text in said(kind) if text not in FAILURE_KINDS]
        wrong += [f"{place}: nothing is said" for part in words if "" in map(str.strip, said(part))]
    assert len(found) > 100
    assert wrong == []


def test_every_kind_is_brought_about_somewhere() -> None:
    kinds = {
        node.value
        for source in sources("engine", "lsp_server")
        if source.path != "engine/protocol/errors.py"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert FAILURE_KINDS - kinds == set()
