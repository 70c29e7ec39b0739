"""What ARCHITECTURE.md claims exists: its tests and files."""

from __future__ import annotations

import ast
import re

from tests.rules.sources import ROOT

REFERENCE = re.compile(r"`?(tests/[\w/]+\.py)::(\w+)(?:\[[^\]]*\])?`?")
FILE_NAME = re.compile(r"`((?:lsp_server|engine|tests|editors)/[\w./-]+)`")


def references(text: str) -> list[tuple[str, str]]:
    """(path, test) of every test a document names."""
    return REFERENCE.findall(text)


def test_names_in(path: str) -> set[str]:
    """The test functions of a file, methods of classes included; none when there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test")}


# pytest collects functions by their name, and this one asks instead of testing.
test_names_in.__test__ = False  # type: ignore[attr-defined]


def missing(text: str) -> list[str]:
    """The references of a document that lead nowhere."""
    return [f"{path}::{name}" for path, name in references(text) if name not in test_names_in(path)]


def test_every_invariant_names_a_test_that_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    invariants = re.split(r"^\d+\. ", text.split("## Invariants")[1], flags=re.MULTILINE)[1:]
    assert len(invariants) >= 10
    assert [line for line in invariants if not references(line)] == []
    assert missing(text) == []


def test_every_file_named_in_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert [name for name in FILE_NAME.findall(text) if not (ROOT / name).exists()] == []


def test_a_reference_that_leads_nowhere_is_found() -> None:
    here = "tests/rules/test_docs_match.py"
    assert missing(f"1. `{here}::test_a_reference_that_leads_nowhere_is_found`") == []
    assert missing(f"2. {here}::test_gone and tests/rules/gone.py::test_a") == [
        f"{here}::test_gone",
        "tests/rules/gone.py::test_a",
    ]
