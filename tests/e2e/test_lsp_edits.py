"""Edits that land: on the document as it is now, hunk by hunk, byte for byte, and not broken (cases T-EDIT)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_actions import CONFIRMING, URI, act_call, action, apply, edit_of, rewrite_call

pytestmark = pytest.mark.asyncio

CONTENT_MODIFIED = -32801
CODE = "def area(w, h):\n    return w * h\n"
WHOLE = lsp.area((0, 0), (1, 16))


async def test_an_action_of_an_older_version_is_refused_quietly() -> None:
    async with lsp.session({"text": "x"}) as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        client.send(lsp.change(2, "z", lsp.area((1, 11), (1, 12))))
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.request("codeAction/resolve", offered)
        assert fault.value.code == CONTENT_MODIFIED
        assert "has changed since" in fault.value.message
        assert (await client.engine())["requests"] == []
    assert client.log == b""


async def test_an_action_made_before_lines_came_above_it_is_done_where_its_text_is_now() -> None:
    async with lsp.session({"text": "def area(w, h):\n    return h * w"}) as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        client.send(lsp.change(2, "import os\n", lsp.area((0, 0), (0, 0))))
        client.send(lsp.change(3, "\nend = 1\n", lsp.area((3, 0), (3, 0))))
        edit = (await client.request("codeAction/resolve", offered))["edit"]
        assert edit["documentChanges"][0]["textDocument"] == {"uri": URI, "version": 3}
        moved = f"import os\n{CODE}\nend = 1\n"
        assert apply(moved, edit) == moved.replace("w * h", "h * w")


@pytest.mark.parametrize("through", ["resolve", "command"])
async def test_a_line_inserted_above_moves_the_edit_with_the_selection(through: str) -> None:
    async with lsp.session({"text": "def area(w, h):\n    return h * w", "hold": True}) as client:
        client.open(CODE)
        asked = await act_call(client, through, WHOLE)
        client.send(asked)
        await client.engine_asked(1)
        client.send(lsp.change(2, "import os\n", lsp.area((0, 0), (0, 0))))
        client.send(lsp.change(3, "\nend = 1\n", lsp.area((3, 0), (3, 0))))
        client.notify("test/release")
        answer = await client.answer(asked)
        edit = answer["edit"] if through == "resolve" else answer
        assert edit["documentChanges"][0]["textDocument"] == {"uri": URI, "version": 3}
        moved = f"import os\n{CODE}\nend = 1\n"
        assert apply(moved, edit) == moved.replace("w * h", "h * w")
        assert (await client.engine())["cancelled"] == []


@pytest.mark.parametrize("through", ["resolve", "command"])
@pytest.mark.parametrize("span", [lsp.area((1, 11), (1, 12)), lsp.area((0, 0), (0, 0)), None])
async def test_a_change_inside_while_the_job_runs_ends_it(through: str, span: dict[str, Any] | None) -> None:
    async with lsp.session({"text": "x", "hold": True}) as client:
        client.open(CODE)
        asked = await act_call(client, through, WHOLE)
        client.send(asked)
        await client.engine_asked(1)
        client.send(lsp.change(2, "z", span))
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CONTENT_MODIFIED
        assert len((await client.engine())["cancelled"]) == 1


async def test_two_changes_of_which_one_is_inside_end_it() -> None:
    async with lsp.session({"text": "x", "hold": True}) as client:
        client.open(CODE)
        asked = client.call("workspace/executeCommand", rewrite_call(WHOLE))
        client.send(asked)
        await client.engine_asked(1)
        outside = {"range": lsp.area((0, 0), (0, 0)), "text": "import os\n"}
        inside = {"range": lsp.area((2, 0), (2, 4)), "text": ""}
        head = {"uri": URI, "version": 2}
        client.notify("textDocument/didChange", {"textDocument": head, "contentChanges": [outside, inside]})
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CONTENT_MODIFIED


async def test_a_document_closed_and_opened_anew_refuses_its_old_actions() -> None:
    async with lsp.session({"text": "x"}) as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        client.open("def other(w):\n    return w + w + 1\n")
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.request("codeAction/resolve", offered)
        assert fault.value.code == CONTENT_MODIFIED


THREE = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n"
THREE_CHANGED = "a = 10\nb = 2\nc = 30\nd = 4\ne = 50"


async def test_a_change_that_is_left_out_leaves_the_others_whole() -> None:
    async with lsp.session({"text": THREE_CHANGED}) as client:
        client.open(THREE)
        edit = await edit_of(client, "simplify", lsp.area((0, 0), (5, 0)))
        assert apply(THREE, edit) == THREE_CHANGED + "\n"
        assert apply(THREE, edit, without=0) == "a = 1\nb = 2\nc = 30\nd = 4\ne = 50\n"
        assert apply(THREE, edit, without=1) == "a = 10\nb = 2\nc = 3\nd = 4\ne = 50\n"
        assert apply(THREE, edit, without=2) == "a = 10\nb = 2\nc = 30\nd = 4\ne = 5\n"


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n", "\r"])
async def test_the_end_of_the_file_stays_as_it_is(ending: str) -> None:
    for said in ("x = 2", "x = 2\n", "x = 2\n\n\n"):
        async with lsp.session({"text": said}) as client:
            client.open(f"x = 1{ending}")
            edit = await client.request("workspace/executeCommand", rewrite_call(lsp.area((0, 0), (9, 0))))
            assert apply(f"x = 1{ending}", edit) == f"x = 2{ending}"


BROKEN = "def area(w, h):\n    return (h * w"
MENDED = "    return h * w"


@pytest.mark.parametrize("capabilities", [lsp.VSCODE, CONFIRMING])
async def test_a_rewrite_that_does_not_parse_is_asked_once_more_for_the_broken_lines(
    capabilities: dict[str, Any],
) -> None:
    async with lsp.session({"text": BROKEN}, {"text": MENDED}, capabilities=capabilities) as client:
        client.open(CODE)
        edit = await edit_of(client, "simplify", WHOLE)
        assert apply(CODE, edit) == CODE.replace("w * h", "h * w")
        first, second = (await client.engine())["requests"]
        assert first["instruction"] != second["instruction"]
        assert "syntax" in second["instruction"]
        assert (second["selection"], second["before"]) == ("    return (h * w", "def area(w, h):\n")


@pytest.mark.parametrize("second", [{"text": "    return ((h * w"}, {"text": "    ret", "stop": "budget"}])
async def test_a_rewrite_that_still_does_not_parse_is_offered_with_a_note(second: dict[str, Any]) -> None:
    wanted = CODE.replace("w * h", "(h * w")
    async with lsp.session({"text": BROKEN}, second, capabilities=CONFIRMING) as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        resolved = await client.request("codeAction/resolve", offered)
        edit = resolved.pop("edit")
        assert resolved == offered
        assert "isPreferred" not in resolved
        assert apply(CODE, edit) == wanted
        (annotation,) = edit["changeAnnotations"].values()
        assert annotation["needsConfirmation"] is True
        assert "syntax errors" in annotation["description"]
        assert len((await client.engine())["requests"]) == 2
    async with lsp.session({"text": BROKEN}, second) as client:
        client.open(CODE)
        edit = await client.request("workspace/executeCommand", rewrite_call(WHOLE))
        assert apply(CODE, edit) == wanted
        assert "syntax errors" in (await client.expect("window/showMessage"))["message"]


async def test_a_note_asks_for_confirmation_whatever_the_settings_say() -> None:
    options = {"rewrite": {"confirm": False}}
    async with lsp.session({"text": BROKEN}, capabilities=CONFIRMING, options=options) as client:
        client.open(CODE)
        edit = await edit_of(client, "simplify", WHOLE)
        (annotation,) = edit["changeAnnotations"].values()
        assert annotation["needsConfirmation"] is True


async def test_code_that_did_not_parse_before_is_rewritten_without_a_note() -> None:
    broken = "def area(w, h:\n    return w * h\n"
    async with lsp.session({"text": broken.replace("w * h", "h * w")}) as client:
        client.open(broken)
        edit = await edit_of(client, "simplify", WHOLE)
        assert apply(broken, edit) == broken.replace("w * h", "h * w")
        assert len((await client.engine())["requests"]) == 1


async def test_one_undo_takes_an_edit_back_whole() -> None:
    async with lsp.session({"text": THREE_CHANGED}) as client:
        client.open(THREE)
        edit = await edit_of(client, "simplify", lsp.area((0, 0), (5, 0)))
        # One edit of one document is one step of an editor's undo; nothing else is applied, before or after it.
        assert list(edit) == ["documentChanges"]
        assert len(edit["documentChanges"]) == 1
        assert client.claim_all("workspace/applyEdit") == []


@pytest.mark.parametrize(("encoding", "start"), [("utf-16", 20), ("utf-8", 24), ("utf-32", 18)])
async def test_a_selection_with_an_emoji_in_front_is_replaced_exactly(encoding: str, start: int) -> None:
    text = 'k = "🙂🙂"; total = a + b  # 🙂\n'
    capabilities = lsp.VSCODE | {"general": {"positionEncodings": [encoding]}}
    async with lsp.session({"text": "sum((a, b))"}, capabilities=capabilities) as client:
        client.open(text)
        edit = await client.request("workspace/executeCommand", rewrite_call(lsp.area((0, start), (0, start + 5))))
        assert apply(text, edit, encoding=encoding) == text.replace("a + b", "sum((a, b))")
        assert (await client.engine())["requests"][0]["selection"] == "a + b"


async def test_mixed_line_ends_stay_on_the_lines_that_stay() -> None:
    text = "a = 1\r\nb = 2\nc = 3\rd = 4\r\n"
    async with lsp.session({"text": "a = 1\nb = 20\nc = 3\nd = 4"}) as client:
        client.open(text)
        edit = await edit_of(client, "simplify", lsp.area((0, 0), (4, 0)))
        assert apply(text, edit) == "a = 1\r\nb = 20\nc = 3\rd = 4\r\n"


async def test_a_mended_text_that_is_the_old_one_is_no_change() -> None:
    text = f"# lacuna: swap\n{CODE}"
    async with lsp.session({"text": BROKEN}, {"text": "    return w * h"}) as client:
        client.open(text)
        offered = await action(client, "comment", lsp.area((0, 3), (0, 3)))
        assert await client.request("codeAction/resolve", offered) == offered
        assert "nothing to change" in (await client.expect("window/showMessage"))["message"]
