"""`lacuna/rewrite` at the wire: results by hunks, drafts by token, several at once, seeds, and what ends one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_actions import URI
from tests.fakes.lsp_client import LspClient, ResponseFault

pytestmark = pytest.mark.asyncio

CONTENT_MODIFIED = -32801
CANCELLED = -32800
INVALID_PARAMS = -32602
CODE = "def area(w, h):\n    return w * h\n\n\ndef edge(w, h):\n    return w + h\n"
AREA, EDGE = lsp.area((0, 0), (2, 0)), lsp.area((4, 0), (6, 0))
DRAFTS = lsp.VSCODE | {"experimental": {"lacuna": {"drafts": True}}}
ROUND = {"text": "def area(w, h):\n    return round(w * h, 2)", "kind": "rewrite", "about": "Round"}
TWICE = {"text": "def edge(w, h):\n    return 2 * (w + h)", "kind": "rewrite", "about": "Double"}


def params(span: dict[str, Any] = AREA, instruction: str = "Round it", **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": URI}, "range": span, "instruction": instruction} | more


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """`text` after edits; its lines end with a line feed, and no character takes two units."""
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    for edit in reversed(edits):
        ends = (edit["range"][side] for side in ("start", "end"))
        start, end = (starts[place["line"]] + place["character"] for place in ends)
        text = text[:start] + edit["newText"] + text[end:]
    return text


async def drafts_of(client: LspClient, count: int) -> list[dict[str, Any]]:
    return [await client.expect("lacuna/draft") for _ in range(count)]


async def test_the_hunks_lead_to_the_new_text() -> None:
    text = "def area(width, h):\n    return round(width * h, 2)"
    async with lsp.session({"text": text}) as client:
        client.open(CODE, version=7)
        result = await client.request("lacuna/rewrite", params())
        assert (result["version"], result["range"]) == (7, AREA)
        assert result["newText"] == f"{text}\n"
        assert "note" not in result
        assert [hunk["newText"] for hunk in result["hunks"]] == [text]
        whole = [{"range": result["range"], "newText": result["newText"]}]
        assert applied(CODE, result["hunks"]) == applied(CODE, whole) == CODE.replace(CODE[:33], f"{text}\n", 1)
        (request,) = (await client.engine())["requests"]
        assert (request["type"], request["instruction"], request["seed"]) == ("Rewrite", "Round it", 0)


async def test_line_ends_of_the_document_are_kept() -> None:
    async with lsp.session({"text": "def area(w, h):\n    return 0"}) as client:
        client.open(CODE.replace("\n", "\r\n"))
        result = await client.request("lacuna/rewrite", params())
        assert result["newText"] == "def area(w, h):\r\n    return 0\r\n"


async def test_several_run_at_once_and_each_draft_says_whose_it_is() -> None:
    held = {"hold_drafts": True}
    script = [ROUND | held | {"drafts": [["def area", 4]]}, TWICE | held | {"drafts": [["def edge", 8]]}]
    async with lsp.session(*script, capabilities=DRAFTS) as client:
        client.open(CODE)
        first = client.call("lacuna/rewrite", params(workDoneToken="one"))
        second = client.call("lacuna/rewrite", params(EDGE, "Double it", workDoneToken="two"))
        client.send(first, second)
        await client.engine_asked(2)
        client.notify("test/step", {"count": 4})
        drafts = {draft["token"]: draft for draft in await drafts_of(client, 2)}
        assert (drafts["one"]["range"], drafts["one"]["text"], drafts["one"]["settled"]) == (AREA, "def area", 4)
        assert (drafts["two"]["range"], drafts["two"]["text"], drafts["two"]["settled"]) == (EDGE, "def edge", 8)
        results = [await client.answer(first), await client.answer(second)]
        both = applied(applied(CODE, results[1]["hunks"]), results[0]["hunks"])
        assert both == "def area(w, h):\n    return round(w * h, 2)\n\n\ndef edge(w, h):\n    return 2 * (w + h)\n"
        client.claim_all("$/progress")


async def test_drafts_stand_at_the_indentation_of_the_selection() -> None:
    code = "class A:\n    def b(self):\n        return 1\n"
    script = {"text": "def b(self):\n    return 2", "drafts": [["def b(self):\n    ret", 13]], "kind": "rewrite"}
    async with lsp.session(script, capabilities=DRAFTS) as client:
        client.open(code)
        result = await client.request("lacuna/rewrite", params(lsp.area((1, 0), (3, 0)), "Return 2"))
        assert result["newText"] == "    def b(self):\n        return 2\n"
        draft = await client.expect("lacuna/draft")
        assert (draft["text"], draft["settled"]) == ("    def b(self):\n        ret", 17)


async def test_one_that_overlaps_takes_the_place_of_the_older_and_leaves_others() -> None:
    async with lsp.session({"text": "x = 1", "hold": True}) as client:
        client.open(CODE)
        calls = [client.call("lacuna/rewrite", params(span)) for span in (AREA, EDGE, lsp.area((1, 0), (2, 0)))]
        client.send(*calls)
        with pytest.raises(ResponseFault) as refused:
            await client.answer(calls[0])
        assert refused.value.code == CANCELLED
        client.notify("test/release", {})
        assert await client.answer(calls[1]) is not None
        assert await client.answer(calls[2]) is not None


async def test_a_change_elsewhere_moves_drafts_and_result() -> None:
    script = ROUND | {"drafts": [["def", 3], ["def area", 8]], "hold_drafts": True, "draft_s": 0.06}
    async with lsp.session(script, capabilities=DRAFTS) as client:
        client.open(CODE)
        message = client.call("lacuna/rewrite", params(workDoneToken=5))
        client.send(message)
        client.notify("test/step", {})
        before = await client.expect("lacuna/draft")
        assert (before["version"], before["range"], before["token"]) == (1, AREA, 5)
        client.send(lsp.change(2, "import math\n", lsp.area((0, 0), (0, 0))))
        client.notify("test/step", {"count": 2})
        after, moved = await client.expect("lacuna/draft"), lsp.area((1, 0), (3, 0))
        assert (after["version"], after["range"], after["text"]) == (2, moved, "def area")
        result = await client.answer(message)
        assert (result["version"], result["range"]) == (2, moved)
        assert applied(f"import math\n{CODE}", result["hunks"]).startswith(
            "import math\ndef area(w, h):\n    return round"
        )
        client.claim_all("$/progress")


async def test_a_change_inside_ends_it() -> None:
    async with lsp.session({"text": "x", "hold": True}) as client:
        client.open(CODE)
        message = client.call("lacuna/rewrite", params())
        client.send(message)
        await client.engine_asked(1)
        client.send(lsp.change(2, "width", lsp.area((1, 11), (1, 12))))
        with pytest.raises(ResponseFault) as refused:
            await client.answer(message)
        assert refused.value.code == CONTENT_MODIFIED
        assert len((await client.engine())["cancelled"]) == 1


async def test_cancelling_stops_the_engine() -> None:
    async with lsp.session({"text": "x", "hold": True}) as client:
        client.open(CODE)
        message = client.call("lacuna/rewrite", params())
        client.send(message)
        await client.engine_asked(1)
        client.cancel(message)
        with pytest.raises(ResponseFault) as refused:
            await client.answer(message)
        assert refused.value.code == CANCELLED
        assert len((await client.engine())["cancelled"]) == 1


async def test_another_seed_is_another_request_to_the_engine() -> None:
    script: list[dict[str, Any]] = [
        ROUND | {"seed": 0},
        ROUND | {"seed": 3, "text": "def area(w, h):\n    return int(w * h)"},
    ]
    async with lsp.session(*script) as client:
        client.open(CODE)
        assert "round" in (await client.request("lacuna/rewrite", params()))["newText"]
        # Lua's numbers may come with a fraction of nothing.
        assert "int" in (await client.request("lacuna/rewrite", params(seed=3.0)))["newText"]


async def test_what_comes_out_unsound_has_a_note() -> None:
    async with lsp.session({"text": "def area(w, h:\n    return w * h"}) as client:
        client.open(CODE)
        result = await client.request("lacuna/rewrite", params())
        assert "syntax errors" in result["note"]


async def test_nothing_to_change_is_null_and_said() -> None:
    async with lsp.session({"text": CODE[:32]}) as client:
        client.open(CODE)
        assert await client.request("lacuna/rewrite", params()) is None
        assert "nothing to change" in (await client.expect("window/showMessage"))["message"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"instruction": " "}, INVALID_PARAMS),
        ({"instruction": None}, INVALID_PARAMS),
        ({"range": lsp.area((0, 3), (0, 3))}, INVALID_PARAMS),
        ({"range": [1, 2]}, INVALID_PARAMS),
        ({"range": lsp.area((1, 2), (0, 3))}, INVALID_PARAMS),
        ({"range": lsp.area((500, 0), (1, 0))}, INVALID_PARAMS),
        ({"textDocument": {"uri": "file:///w/closed.py"}}, INVALID_PARAMS),
        ({"textDocument": URI}, INVALID_PARAMS),
        ({"textDocument": {"uri": URI, "version": "1"}}, INVALID_PARAMS),
        ({"textDocument": {"uri": URI, "version": 2}}, CONTENT_MODIFIED),
        ({"seed": -1}, INVALID_PARAMS),
        ({"seed": 2**31}, INVALID_PARAMS),
        ({"seed": 1.5}, INVALID_PARAMS),
        ({"seed": True}, INVALID_PARAMS),
        ({"workDoneToken": [1]}, INVALID_PARAMS),
    ],
)
async def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any], code: int) -> None:
    async with lsp.session() as client:
        client.open(CODE)
        with pytest.raises(ResponseFault) as refused:
            await client.request("lacuna/rewrite", params() | wrong)
        assert refused.value.code == code
        assert (await client.engine())["requests"] == []
