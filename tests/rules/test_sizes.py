"""Files and functions stay readable, and no file is a drawer for odds and ends."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from tests.rules.sources import sources

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
