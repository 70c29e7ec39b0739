"""Files and functions stay readable, and no file is a drawer for odds and ends."""

from __future__ import annotations

import ast
import os
from pathlib import Path, PurePosixPath

from tests.rules.sources import ROOT, sources

MOST_LINES_IN_A_FILE = 400
MOST_LINES_IN_A_FUNCTION = 60
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_no_file_is_too_long() -> None:
    long = [
        f"{source.path}: {count} lines"
        for source in sources("lsp_server", "engine", "tests")
        if (count := source.text.count("\n")) > MOST_LINES_IN_A_FILE
    ]
    assert long == []


def test_no_file_of_an_editor_s_client_is_too_long() -> None:
    own = []
    for folder, folders, names in os.walk(ROOT / "editors"):
        folders[:] = [name for name in folders if name not in {"node_modules", "dist"}]
        own += [Path(folder, name) for name in names if Path(name).suffix in {".ts", ".mjs", ".lua"}]
    assert len(own) > 10
    long = [path for path in own if path.read_text(encoding="utf-8").count("\n") > MOST_LINES_IN_A_FILE]
    assert long == []


def test_no_function_is_too_long() -> None:
    long = [
        f"{source.path}:{node.lineno} {node.name}: {count} lines"
        for source in sources("lsp_server", "engine", "tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (count := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES_IN_A_FUNCTION
    ]
    assert long == []


def test_every_file_is_named_after_one_idea() -> None:
    drawers = [
        source.path
        for source in sources("lsp_server", "engine", "tests")
        if DRAWERS & {part.removesuffix(".py") for part in PurePosixPath(source.path).parts}
    ]
    assert drawers == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        source.path
        for source in sources("lsp_server", "engine", "tests")
        if source.text.strip() and ast.get_docstring(source.tree) is None
    ]
    assert silent == []
