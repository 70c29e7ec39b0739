"""Long files are worked on in parts (cases T-ROB-3, T-ROB-4).

What a key costs is measured by `tests/bench/text_edits.py`; that it rebuilds next to nothing, by the rope's tests.
"""

from __future__ import annotations

import json

import pytest

from lsp_server.settings import Settings
from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

KEYS = 50
RECORD = {"id": 12345, "name": "größe", "tags": ["a", "b"]}
LONG_JSON = json.dumps([RECORD] * 70_000, indent=1, ensure_ascii=False)
DENSE_JSON = json.dumps([RECORD] * 97_000, ensure_ascii=False)


async def test_fifty_keys_in_a_long_file_all_land() -> None:
    async with lsp.session({"text": "1"}) as client:
        client.open("value = 1\n" * 20_000)
        client.send(lsp.change(2, "\n", lsp.area((10_000, 0), (10_000, 0))))
        for column in range(KEYS):
            client.send(lsp.change(3 + column, chr(97 + column % 26), lsp.area((10_000, column), (10_000, column))))
        (item,) = await client.inline(10_000, KEYS)
        assert item["range"] == lsp.area((10_000, KEYS), (10_000, KEYS))
        typed = "".join(chr(97 + column % 26) for column in range(KEYS))
        (request,) = (await client.engine())["requests"]
        assert request["prefix"].endswith(f"value = 1\n{typed}")
        assert request["suffix"].startswith("\nvalue = 1\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [("value = 1\n" * 100_000, 50_000), (LONG_JSON, 150_000)],
    ids=["100,000 lines", "5 MB of JSON in lines"],
)
async def test_of_a_long_file_the_engine_sees_a_window(text: str, line: int) -> None:
    budget = Settings()
    async with lsp.session({"text": "1"}) as client:
        client.open(text)
        client.send(lsp.change(2, "y = \n", lsp.area((line, 0), (line, 0))))
        (item,) = await client.inline(line, 4)
        assert item["range"] == lsp.area((line, 4), (line, 4))
        (request,) = (await client.engine())["requests"]
        assert request["prefix"].endswith("\ny = ")
        assert budget.prefix_chars // 2 < len(request["prefix"]) <= budget.prefix_chars
        assert budget.suffix_chars // 2 < len(request["suffix"]) <= budget.suffix_chars


@pytest.mark.parametrize(
    "text", ["x = [" + "1, " * 700_000, DENSE_JSON], ids=["a line of 2 MB", "5 MB of JSON in one line"]
)
async def test_a_line_of_megabytes_is_left_alone(text: str) -> None:
    async with lsp.session({"text": "1"}) as client:
        client.open(text)
        client.send(lsp.change(2, "y", lsp.area((0, 1_000_000), (0, 1_000_000))))
        assert await client.inline(0, 1_000_001) is None
        assert (await client.engine())["requests"] == []
