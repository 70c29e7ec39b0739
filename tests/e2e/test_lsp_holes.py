"""Several holes filled in one job, as a code action and for plug-ins (case T-MULTI-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.editor_model import EditorModel
from tests.fakes.lsp_actions import CONFIRMING, URI, action, actions, apply, edit_of

pytestmark = pytest.mark.asyncio

CONTENT_MODIFIED, INVALID_PARAMS = -32801, -32602
TEXT = """def area(w, h):
    return <fill>


def twice(x):
    ...


def name(user):
    pass  # fill


END = 1
"""
FILLED = """def area(w, h):
    return w * h


def twice(x):
    y = x + x
    return y


def name(user):
    return user.name


END = 1
"""
REPLIES = [{"text": "w * h"}, {"text": "y = x + x\n    return y"}, {"text": "return user.name"}]
WHOLE = lsp.area((0, 0), (10, 0))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_all_holes_of_a_selection_are_filled_by_one_edit(newline: str) -> None:
    async with lsp.session(*REPLIES) as client:
        text = TEXT.replace("\n", newline)
        client.open(text, version=4)
        offered = await action(client, "fill_holes", WHOLE)
        assert offered["title"] == "Fill 3 holes"
        edit = (await client.request("codeAction/resolve", offered))["edit"]
        assert apply(text, edit) == FILLED.replace("\n", newline)
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": URI, "version": 4}
        assert len(change["edits"]) == 3


async def test_holes_near_each_other_are_one_request_with_the_text_between_them() -> None:
    async with lsp.session(*REPLIES) as client:
        client.open(TEXT)
        await edit_of(client, "fill_holes", WHOLE)
        (request,) = (await client.engine())["requests"]
        assert (request["type"], request["draft"], request["max_lines"]) == ("Fill", "", 0)
        assert request["prefix"] == "def area(w, h):\n    return "
        assert request["further"] == [
            {"island": "\n\n\ndef twice(x):\n    ", "draft": "", "max_lines": 0},
            {"island": "\n\n\ndef name(user):\n    ", "draft": "", "max_lines": 0},
        ]
        assert request["suffix"] == "\n\n\nEND = 1\n"
    async with lsp.session(REPLIES[0]) as client:
        client.open(TEXT)
        await edit_of(client, "fill_holes", lsp.area((0, 0), (2, 0)))
        (alone,) = (await client.engine())["requests"]
        assert alone["further"] == []
        assert request["deadline_ms"] == 3 * alone["deadline_ms"] > 0


async def test_holes_far_apart_are_a_request_for_each_neighbourhood() -> None:
    text = TEXT.replace("def name", "# a long way\n" * 200 + "def name")
    async with lsp.session(*REPLIES) as client:
        client.open(text)
        edit = await edit_of(client, "fill_holes", lsp.area((0, 0), (220, 0)))
        assert apply(text, edit) == FILLED.replace("def name", "# a long way\n" * 200 + "def name")
        near, far = (await client.engine())["requests"]
        assert len(near["further"]) == 1
        assert near["suffix"].startswith("\n\n\n# a long way\n")
        assert far["further"] == []
        # What is filled stands in front of what is asked next.
        assert "y = x + x" in far["prefix"] or far["prefix"].startswith("# a long way")


async def test_only_the_holes_of_the_selection_are_filled() -> None:
    async with lsp.session({"text": "w * h"}) as client:
        client.open(TEXT)
        span = lsp.area((0, 0), (2, 0))
        assert (await action(client, "fill_holes", span))["title"] == "Fill 1 hole"
        assert apply(TEXT, await edit_of(client, "fill_holes", span)) == TEXT.replace("<fill>", "w * h")
        listed = await actions(client, lsp.area((0, 0), (1, 4)))
        assert not [item for item in listed if item["kind"].endswith("fill_holes")]


async def test_markers_are_the_persons_own() -> None:
    async with lsp.session({"text": "w * h"}, options={"holes": {"markers": ["HOLE"]}}) as client:
        text = TEXT.replace("<fill>", "HOLE")
        client.open(text)
        assert (await action(client, "fill_holes", WHOLE))["title"] == "Fill 1 hole"
        assert apply(text, await edit_of(client, "fill_holes", WHOLE)) == text.replace("HOLE", "w * h")


async def test_a_hole_that_was_cut_off_stays_and_the_person_is_told() -> None:
    cut = {"text": "y = x + ", "stop": "budget"}
    async with lsp.session(REPLIES[0], cut, REPLIES[2]) as client:
        client.open(TEXT)
        edit = await edit_of(client, "fill_holes", WHOLE)
        assert apply(TEXT, edit) == TEXT.replace("<fill>", "w * h").replace("pass  # fill", "return user.name")
        assert "1 of 3 holes" in (await client.expect("window/showMessage"))["message"]


@pytest.mark.parametrize("said", ["...", " <fill>", "pass  # fill"])
async def test_a_text_that_is_only_a_marker_fills_nothing(said: str) -> None:
    async with lsp.session({"text": said}, *REPLIES[1:]) as client:
        client.open(TEXT)
        edit = (await client.request("codeAction/resolve", await action(client, "fill_holes", WHOLE)))["edit"]
        assert apply(TEXT, edit) == FILLED.replace("w * h", "<fill>")
        assert "1 of 3 holes" in (await client.expect("window/showMessage"))["message"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [({"text": "y =", "stop": "deadline"}, "cut off"), ({"text": " \n"}, "nothing to change")],
)
async def test_holes_that_nothing_came_for_are_no_edit(reply: dict[str, Any], said: str) -> None:
    async with lsp.session(reply) as client:
        client.open(TEXT)
        offered = await action(client, "fill_holes", WHOLE)
        assert await client.request("codeAction/resolve", offered) == offered
        (shown,) = client.claim_all("window/showMessage")
        assert said in shown["message"]


async def test_an_engine_that_fails_between_two_holes_changes_nothing() -> None:
    failing = {"error": ["gone", "the engine went away", "ask again"]}
    async with lsp.session(REPLIES[0], failing) as client:
        client.open(TEXT)
        offered = await action(client, "fill_holes", WHOLE)
        assert await client.request("codeAction/resolve", offered) == offered
        (shown,) = client.claim_all("window/showMessage")
        assert "went away" in shown["message"]


async def test_a_line_inserted_above_while_the_holes_are_filled_moves_them() -> None:
    held = REPLIES[1] | {"hold": True}
    async with lsp.session(REPLIES[0], held, REPLIES[2]) as client:
        client.open(TEXT)
        asked = client.call("codeAction/resolve", await action(client, "fill_holes", WHOLE))
        client.send(asked)
        await client.engine_asked(1)
        client.send(lsp.change(2, "import os\n", lsp.area((0, 0), (0, 0))))
        client.notify("test/release")
        edit = (await client.answer(asked))["edit"]
        assert apply(f"import os\n{TEXT}", edit) == f"import os\n{FILLED}"


async def test_a_change_between_the_holes_ends_the_job() -> None:
    async with lsp.session(REPLIES[0], {"text": "x", "hold": True}) as client:
        client.open(TEXT)
        asked = client.call("codeAction/resolve", await action(client, "fill_holes", WHOLE))
        client.send(asked)
        await client.engine_asked(1)
        client.send(lsp.change(2, "# c\n", lsp.area((3, 0), (3, 0))))
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CONTENT_MODIFIED
        assert len((await client.engine())["cancelled"]) == 1


async def test_a_hole_that_does_not_parse_is_asked_once_more_and_then_marked() -> None:
    async with lsp.session({"text": "f(w"}, *REPLIES[1:], {"text": "f(w)"}, capabilities=CONFIRMING) as client:
        client.open(TEXT)
        edit = await edit_of(client, "fill_holes", WHOLE)
        assert apply(TEXT, edit) == FILLED.replace("w * h", "f(w)")
        assert "syntax" not in edit["changeAnnotations"]["lacuna"]["description"]
        repair = (await client.engine())["requests"][1]
        assert (repair["type"], repair["selection"]) == ("Rewrite", "f(w")
    async with lsp.session({"text": "f(w"}, *REPLIES[1:], {"text": "f(("}, capabilities=CONFIRMING) as client:
        client.open(TEXT)
        edit = await edit_of(client, "fill_holes", WHOLE)
        assert apply(TEXT, edit) == FILLED.replace("w * h", "f(w")
        assert "syntax" in edit["changeAnnotations"]["lacuna"]["description"]
        assert len((await client.engine())["requests"]) == 2


# Three cursors, as a plug-in sends them.
CURSORS = "def area(w, h):\n    return \n\ndef perimeter(w, h):\n    return \n\ndef name(user):\n    return \n"
PLACES = [lsp.area((line, 11), (line, 11)) for line in (1, 4, 7)]
TEXTS = ["w * h", "2 * (w + h)", "user.name"]


def fill_call(ranges: Any, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": URI}, "ranges": ranges} | more


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
async def test_three_cursors_get_three_texts_each_for_its_own_place(order: list[int]) -> None:
    async with lsp.session(*({"text": text} for text in TEXTS)) as client:
        client.open(CURSORS, version=9)
        result = await client.request("lacuna/fillHoles", fill_call([PLACES[number] for number in order]))
        assert result == {
            "version": 9,
            "holes": [{"range": PLACES[number], "newText": TEXTS[number]} for number in order],
        }
        (request,) = (await client.engine())["requests"]
        islands = [hole["island"] for hole in request["further"]]
        assert islands == ["\n\ndef perimeter(w, h):\n    return ", "\n\ndef name(user):\n    return "]


async def test_several_selections_are_one_job() -> None:
    async with lsp.session(*REPLIES) as client:
        client.open(TEXT)
        selections = [lsp.area((4, 0), (10, 0)), lsp.area((0, 0), (2, 0))]
        result = await client.request("lacuna/fillHoles", fill_call(selections))
        places = [((5, 4), (5, 7)), ((9, 4), (9, 16)), ((1, 11), (1, 17))]
        assert [hole["range"] for hole in result["holes"]] == [lsp.area(*place) for place in places]
        texts = [hole["newText"] for hole in result["holes"]]
        assert texts == ["y = x + x\n    return y", "return user.name", "w * h"]
        # The engine was asked from the top to the bottom, whatever the order of the selections.
        assert (await client.engine())["requests"][0]["prefix"] == "def area(w, h):\n    return "


async def test_cursors_follow_a_document_that_moves_outside() -> None:
    async with lsp.session({"text": TEXTS[0], "hold": True}, {"text": TEXTS[1]}) as client:
        client.open(CURSORS)
        asked = client.call("lacuna/fillHoles", fill_call(PLACES[:2]))
        client.send(asked)
        await client.engine_asked(1)
        client.send(lsp.change(2, "🙂\n", lsp.area((0, 0), (0, 0))))
        client.notify("test/release")
        result = await client.answer(asked)
        assert result["version"] == 2
        editor = EditorModel(f"🙂\n{CURSORS}", "utf-16")
        for hole in reversed(result["holes"]):
            place = (hole["range"]["start"]["line"], hole["range"]["start"]["character"])
            editor.replace(place, place, hole["newText"])
        assert "return w * h\n\ndef perimeter(w, h):\n    return 2 * (w + h)\n" in editor.text


async def test_drafts_of_several_places_say_which_one_they_are_of() -> None:
    replies = [{"text": text, "drafts": [text[:3]]} for text in TEXTS]
    async with lsp.session(*replies, options={"drafts": True}) as client:
        client.open(CURSORS)
        await client.request("lacuna/fillHoles", fill_call(PLACES))
        drafts = client.claim_all("lacuna/draft")
        # The feed leaves out what comes too fast behind another.
        assert (drafts[0]["hole"], drafts[0]["text"]) == (0, "w *")
        await client.request("lacuna/fillHoles", fill_call(PLACES[:1]))
        (alone,) = client.claim_all("lacuna/draft")
        assert "hole" not in alone


async def test_a_place_that_nothing_came_for_has_no_text() -> None:
    async with lsp.session({"text": "w *", "stop": "budget"}, {"text": TEXTS[1]}) as client:
        client.open(CURSORS)
        result = await client.request("lacuna/fillHoles", fill_call(PLACES[:2]))
        assert [hole["newText"] for hole in result["holes"]] == [None, TEXTS[1]]
        await client.expect("window/showMessage")


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"ranges": PLACES},
        {"textDocument": {"uri": 5}, "ranges": PLACES},
        fill_call([]),
        fill_call("all"),
        fill_call([{"start": 1}]),
        fill_call(PLACES * 30),
        fill_call([PLACES[0], PLACES[0]]),
        fill_call([lsp.area((0, 0), (1, 4)), lsp.area((1, 0), (1, 5))]),
        fill_call(PLACES, workDoneToken={}),
        fill_call(PLACES) | {"textDocument": {"uri": URI, "version": "1"}},
        fill_call(PLACES) | {"textDocument": {"uri": "file:///never.py"}},
        {"textDocument": {"jsonrpc": "2.0", "class": 1}, "ranges": PLACES},
    ],
)
async def test_places_that_make_no_sense_are_refused(params: Any) -> None:
    async with lsp.session() as client:
        client.open(CURSORS)
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.request("lacuna/fillHoles", params)
        assert fault.value.code == INVALID_PARAMS


async def test_places_of_an_older_version_are_refused_quietly() -> None:
    async with lsp.session() as client:
        client.open(CURSORS, version=2)
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.request("lacuna/fillHoles", fill_call(PLACES) | {"textDocument": {"uri": URI, "version": 1}})
        assert fault.value.code == CONTENT_MODIFIED
