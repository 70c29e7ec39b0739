"""Inline completion at the wire: positions, menu selection, robustness (protocol cases T-ENC, T-ROB, T-POP)."""

from __future__ import annotations

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio


async def test_answers_with_the_engines_text() -> None:
    async with lsp.session({"text": "a + b"}) as client:
        client.open("def add(a, b):\n    return \n")
        items = await client.inline(1, 11)
        assert items == [{"insertText": "a + b", "range": lsp.area((1, 11), (1, 11))}]
        seen = await client.engine()
        assert seen["requests"][0]["prefix"] == "def add(a, b):\n    return "
        assert seen["requests"][0]["suffix"] == "\n"
