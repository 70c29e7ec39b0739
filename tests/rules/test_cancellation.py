"""A cancelled task ends: nothing that may swallow the cancellation is used to limit a wait.

`asyncio.wait_for` of Python 3.11 returns the result of what it waited for when both come at once, and the task goes on
as if nobody had cancelled it. `asyncio.timeout` does not.
"""

from __future__ import annotations

import ast

import pytest

from tests.rules.sources import sources


def limited_waits(tree: ast.AST) -> list[int]:
    """The lines that name `wait_for`, called or imported."""
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="asyncio"), attr="wait_for"):
                lines.append(node.lineno)
            case ast.ImportFrom(module="asyncio") if any(alias.name == "wait_for" for alias in node.names):
                lines.append(node.lineno)
    return lines


def test_no_wait_is_limited_by_what_may_swallow_a_cancellation() -> None:
    found = [
        f"{source.path}:{line}" for source in sources("lsp_server", "engine") for line in limited_waits(source.tree)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("await asyncio.wait_for(x, 1)", [1]),
        ("from asyncio import wait_for", [1]),
        ("async with asyncio.timeout(1):\n    await x", []),
        ("await editor.wait_for('x')", []),
    ],
)
def test_the_rule_sees_what_it_forbids(text: str, lines: list[int]) -> None:
    wrapped = "async def f():\n" + "".join(f"    {line}\n" for line in text.split("\n"))
    assert [line - 1 for line in limited_waits(ast.parse(wrapped))] == lines
