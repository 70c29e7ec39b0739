"""Nothing is timed by the wall clock: it jumps when a machine wakes, is corrected, or changes its season."""

from __future__ import annotations

import ast

import pytest

from tests.rules.sources import sources

# Attributes of `time` and `datetime` that read the wall clock.
WALL = frozenset({"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"})
# The recipe of the weights writes down when it was run; nothing waits for that.
FREE = ("engine/training/",)


def wall_clocks(tree: ast.AST) -> list[int]:
    """The lines that read the wall clock, by whatever name the functions were imported."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
        if alias.name in ("time", "time_ns")
    }
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() if ".".join(ast.unparse(node).split(".")[-2:]) in WALL:
                lines.append(node.lineno)
            case ast.Name(id=name, ctx=ast.Load()) if name in names:
                lines.append(node.lineno)
    return sorted(lines)


def test_no_duration_or_deadline_is_taken_from_the_wall_clock() -> None:
    found = [
        f"{source.path}:{line}"
        for source in sources("lsp_server", "engine")
        if not source.path.startswith(FREE)
        for line in wall_clocks(source.tree)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import time\nx = time.time()", [2]),
        ("from time import time as now\nf(now)", [2]),
        ("import datetime\ndatetime.datetime.now()", [2]),
        ("import time\ntime.monotonic()\ntime.perf_counter()", []),
        ("from time import perf_counter, sleep\nperf_counter()", []),
    ],
)
def test_a_wall_clock_is_seen_under_any_name(text: str, lines: list[int]) -> None:
    assert wall_clocks(ast.parse(text)) == lines
