"""Line ends and client columns are known in one file; everything else counts code points."""

from __future__ import annotations

import ast

from tests.rules.sources import sources

POSITIONS = "lsp_server/positions.py"


def test_columns_and_line_splitting_are_known_in_one_file() -> None:
    elsewhere = [
        f"{source.path}:{node.lineno} uses .{node.attr}"
        for source in sources("lsp_server")
        if source.path != POSITIONS
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("character", "splitlines")
    ]
    assert elsewhere == []


def test_client_capabilities_are_read_in_one_file() -> None:
    elsewhere = [
        f"{source.path}:{node.lineno}"
        for source in sources("lsp_server")
        if source.path != "lsp_server/capabilities.py"
        for node in ast.walk(source.tree)
        if (isinstance(node, ast.Attribute) and node.attr == "client_capabilities")
        or (isinstance(node, ast.Name) and node.id == "get_capability")
    ]
    assert elsewhere == []
