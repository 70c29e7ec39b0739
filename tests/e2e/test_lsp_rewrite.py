"""Edits of code actions, the rewrite command and the menu at the wire (cases T-EDIT, T-POP-3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_actions import URI, act_call, action, apply, rewrite_call

pytestmark = pytest.mark.asyncio

CONTENT_MODIFIED = -32801
INVALID_PARAMS = -32602
CODE = "def area(w, h):\n    return w * h\n"


WHOLE = lsp.area((0, 0), (1, 16))


async def test_resolve_fills_in_the_smallest_versioned_edit() -> None:
    text = 'def area(w, h):\n    """Width times height."""\n    return w * h'
    async with lsp.session({"text": text}) as client:
        client.open(CODE, version=7)
        offered = await action(client, "docstring", WHOLE)
        resolved = await client.request("codeAction/resolve", offered)
        edit = resolved.pop("edit")
        assert resolved == offered
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": URI, "version": 7}
        assert sum(len(item["newText"]) for item in change["edits"]) < len(text)
        (request,) = (await client.engine())["requests"]
        assert (request["type"], request["selection"]) == ("Rewrite", CODE[:-1])
        assert "docstring" in request["instruction"]


async def test_fill_asks_for_the_gap_and_starts_from_the_selection() -> None:
    async with lsp.session({"text": "h * w"}) as client:
        client.open(CODE)
        span = lsp.area((1, 11), (1, 16))
        resolved = await client.request("codeAction/resolve", await action(client, "fill", span))
        (request,) = (await client.engine())["requests"]
        assert (request["type"], request["draft"]) == ("Fill", "w * h")
        assert (request["prefix"], request["suffix"]) == ("def area(w, h):\n    return ", "\n")
        assert apply(CODE, resolved["edit"]) == "def area(w, h):\n    return h * w\n"


async def test_filling_whole_lines_keeps_the_line_end_and_the_lines_around() -> None:
    text = "def gross(net, rate):\n    return net\n\n\ndef total():\n    return 0\n"
    async with lsp.session({"text": "return round(net * rate, 2)"}) as client:
        client.open(text)
        offered = await action(client, "fill", lsp.area((1, 0), (2, 0)))
        edit = (await client.request("codeAction/resolve", offered))["edit"]
        assert apply(text, edit) == text.replace("return net", "return round(net * rate, 2)")
        (request,) = (await client.engine())["requests"]
        assert request["prefix"].endswith("rate):\n    ")
        assert request["suffix"].startswith("\n\n\ndef")


async def test_filling_inside_a_line_asks_for_one_line() -> None:
    async with lsp.session({"text": "h, w"}) as client:
        client.open("area = f(w, h) * 2\n")
        offered = await action(client, "fill", lsp.area((0, 9), (0, 13)))
        edit = (await client.request("codeAction/resolve", offered))["edit"]
        assert apply("area = f(w, h) * 2\n", edit) == "area = f(h, w) * 2\n"
        assert (await client.engine())["requests"][0]["max_lines"] == 1


@pytest.mark.parametrize(
    "data",
    [None, {}, "ticket", {"uri": URI}, {"uri": URI, "version": "1", "start": 0, "end": 1, "action": "fill"}],
)
async def test_an_action_that_is_not_ours_comes_back_unchanged(data: Any) -> None:
    async with lsp.session() as client:
        client.open(CODE)
        foreign = {"title": "Other", "kind": "quickfix"} | ({} if data is None else {"data": data})
        assert await client.request("codeAction/resolve", foreign) == foreign


async def test_an_answer_like_the_selection_is_no_edit() -> None:
    async with lsp.session({"text": CODE[:-1]}) as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        assert await client.request("codeAction/resolve", offered) == offered
        assert (await client.expect("window/showMessage"))["type"] == 3
        assert await client.request("workspace/executeCommand", rewrite_call(WHOLE)) is None
        await client.expect("window/showMessage")


@pytest.mark.parametrize("stop", ["budget", "deadline"])
async def test_an_answer_cut_off_is_not_applied(stop: str) -> None:
    async with lsp.session({"text": "def area(w", "stop": stop}) as client:
        client.open(CODE)
        assert await client.request("workspace/executeCommand", rewrite_call(WHOLE)) is None
        assert "cut off" in (await client.expect("window/showMessage"))["message"]


INFO, WARNING = 3, 2


async def act(client: lsp.LspClient, through: str) -> dict[str, Any]:
    """The one message a person gets for a rewrite that comes to nothing."""
    if through == "resolve":
        offered = await action(client, "simplify", WHOLE)
        assert await client.request("codeAction/resolve", offered) == offered
    else:
        assert await client.request("workspace/executeCommand", rewrite_call(WHOLE)) is None
    (shown,) = client.claim_all("window/showMessage")
    assert isinstance(shown, dict)
    return shown


SWAPPED = "def area(w, h):\n    return h * w"
THROUGH = pytest.mark.parametrize("through", ["resolve", "command"])


@THROUGH
@pytest.mark.parametrize("state", ["starting", "loading"])
async def test_an_act_waits_for_an_engine_on_its_way(through: str, state: str) -> None:
    capabilities = lsp.VSCODE | {"window": {"workDoneProgress": True}}
    answers = {"window/workDoneProgress/create": lambda params: None}
    async with lsp.session({"text": SWAPPED}, state=state, capabilities=capabilities, answers=answers) as client:
        client.open(CODE)
        asked = await act_call(client, through, WHOLE)
        client.send(asked)
        begun = (await client.expect("$/progress"))["value"]
        assert (begun["kind"], begun["cancellable"]) == ("begin", True)
        assert "waiting for the engine" in begun["message"]
        # Who types is answered at once all the same.
        assert await client.inline(0, 3) is None
        client.notify("test/state", {"state": "ready", "message": "ready"})
        answer = await client.answer(asked)
        assert apply(CODE, answer["edit"] if through == "resolve" else answer) == CODE.replace("w * h", "h * w")
        client.claim_all("$/progress")
        client.claim_all("window/logMessage")


async def test_an_act_that_waits_for_the_engine_can_be_cancelled() -> None:
    async with lsp.session({"text": SWAPPED}, state="loading") as client:
        client.open(CODE)
        asked = client.call("workspace/executeCommand", rewrite_call(WHOLE))
        client.send(asked)
        assert await client.inline(0, 3) is None
        client.cancel(asked)
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == -32800
        client.notify("test/state", {"state": "ready", "message": "ready"})
        assert (await client.engine())["requests"] == []
        client.claim_all("window/logMessage")


@THROUGH
async def test_no_engine_no_edit_and_a_message_for_each_act(through: str) -> None:
    async with lsp.session(state="loading", options={"rewrite": {"deadlineMs": 20}}) as client:
        client.open(CODE)
        for _ in range(3):
            shown = await act(client, through)
            assert (shown["type"], "not ready yet" in shown["message"]) == (INFO, True)


@THROUGH
@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("draining", INFO),
        ("loading", INFO),
        ("window_exceeded", INFO),
        ("bad_request", INFO),
        ("gone", WARNING),
        ("internal", WARNING),
        ("out_of_memory", WARNING),
    ],
)
async def test_every_act_that_fails_has_its_message(through: str, kind: str, level: int) -> None:
    async with lsp.session({"error": [kind, "it went wrong", "do this"]}) as client:
        client.open(CODE)
        for _ in range(2):
            assert await act(client, through) == {"type": level, "message": "Lacuna: it went wrong. Do this."}


async def test_an_act_has_its_message_though_typing_was_told_before() -> None:
    async with lsp.session({"error": ["window_exceeded", "too long", "select less text"]}) as client:
        client.open(CODE)
        for _ in range(2):
            assert await client.inline(0, 3) is None
        assert len(client.claim_all("window/showMessage")) == 1
        assert "too long" in (await act(client, "command"))["message"]


@pytest.mark.parametrize("offered_before", [True, False])
async def test_who_turned_lacuna_off_is_told_so(offered_before: bool) -> None:
    async with lsp.session() as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        client.notify("workspace/didChangeConfiguration", {"settings": {"enable": False}})
        if offered_before:
            assert await client.request("codeAction/resolve", offered) == offered
        else:
            assert await client.request("workspace/executeCommand", rewrite_call(WHOLE)) is None
        (shown,) = client.claim_all("window/showMessage")
        assert (shown["type"], "turned off" in shown["message"], "`enable`" in shown["message"]) == (INFO, True, True)
        assert (await client.engine())["requests"] == []


async def test_who_asks_an_engine_that_failed_is_told_the_remedy_and_it_is_tried_once() -> None:
    async with lsp.session(state="failed") as client:
        client.open(CODE)
        client.notify("test/state", {"state": "failed", "message": "no model m. Run `lacuna models pull m`."})
        await client.inline(0, 3)
        assert (await client.engine())["starts"] == 0
        assert len(client.claim_all("window/showMessage")) == 1
        first, *others = [await act(client, "command") for _ in range(3)]
        assert (first["type"], "tried once more" in first["message"]) == (WARNING, True)
        for shown in (first, *others):
            assert "no model m. Run `lacuna models pull m`. Nothing was changed" in shown["message"]
        assert all("tried once more" not in shown["message"] for shown in others)
        assert (await client.engine())["starts"] == 1


async def test_the_command_returns_a_versioned_edit() -> None:
    async with lsp.session({"text": "sum((a, b))"}) as client:
        client.open("k = 1\ntotal = a + b * c\nm = 2\n", version=3)
        call = rewrite_call(lsp.area((1, 8), (1, 13)), "use sum", version=3)
        edit = await client.request("workspace/executeCommand", call)
        assert apply("k = 1\ntotal = a + b * c\nm = 2\n", edit) == "k = 1\ntotal = sum((a, b)) * c\nm = 2\n"
        assert edit["documentChanges"][0]["textDocument"] == {"uri": URI, "version": 3}


async def test_a_document_with_carriage_returns_keeps_them() -> None:
    async with lsp.session({"text": "x = 1\ny = 2\nz = 3"}) as client:
        client.open("x = 1\r\nz = 3\r\n")
        edit = await client.request("workspace/executeCommand", rewrite_call(lsp.area((0, 0), (1, 5)), "add y"))
        (request,) = (await client.engine())["requests"]
        assert request["selection"] == "x = 1\nz = 3"
        new = [item["newText"] for item in edit["documentChanges"][0]["edits"]]
        assert new == ["y = 2\r\n"]


@pytest.mark.parametrize(
    "argument",
    [
        None,
        "text",
        {},
        {"uri": URI, "range": WHOLE},
        {"uri": URI, "range": WHOLE, "instruction": " "},
        {"uri": URI, "range": "all", "instruction": "tidy"},
        {"uri": URI, "range": lsp.area((0, 0), (0, 0)), "instruction": "tidy"},
        {"uri": "file:///never.py", "range": WHOLE, "instruction": "tidy"},
        {"uri": URI, "range": WHOLE, "instruction": "tidy", "version": "1"},
    ],
)
async def test_a_rewrite_that_makes_no_sense_is_refused(argument: Any) -> None:
    async with lsp.session() as client:
        client.open(CODE)
        call = {"command": "lacuna.rewrite", "arguments": [] if argument is None else [argument]}
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.request("workspace/executeCommand", call)
        assert fault.value.code == INVALID_PARAMS


async def test_an_unknown_command_is_refused() -> None:
    async with lsp.session() as client:
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.request("workspace/executeCommand", {"command": "lacuna.nothing"})
        assert fault.value.code == INVALID_PARAMS


async def test_status_tells_of_the_last_results() -> None:
    async with lsp.session({"text": "a"}) as client:
        client.open("total = ")
        await client.inline(0, 8)
        status = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
        assert status["state"] == "ready"
        assert status["facts"]["model"] == "scripted"
        assert status["report"]["jobs_done"] == 1
        (last,) = status["last"]
        assert last["kind"] == "inline"
        assert (last["stats"]["passes"], last["stats"]["tokens"], last["stats"]["route"]) == (3, 7, "causal")


async def test_a_menu_entry_replaces_the_word_and_sorts_last() -> None:
    async with lsp.session({"text": "int('hi')"}) as client:
        client.open("pr")
        menu = await client.request("textDocument/completion", lsp.place(URI, 0, 2))
        assert menu["isIncomplete"] is True
        (item,) = menu["items"]
        assert item["filterText"].startswith("pr")
        assert item["textEdit"] == {"range": lsp.area((0, 0), (0, 2)), "newText": "print('hi')"}
        assert item["insertTextMode"] == 1
        assert item["sortText"] > "zzz"
        assert (await client.engine())["requests"][0]["max_lines"] == 1


async def test_a_client_without_the_modes_is_told_none() -> None:
    async with lsp.session({"text": "int('hi')"}, capabilities={}) as client:
        client.open("pr")
        menu = await client.request("textDocument/completion", lsp.place(URI, 0, 2))
        assert "insertTextMode" not in menu["items"][0]
