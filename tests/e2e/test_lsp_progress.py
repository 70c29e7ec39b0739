"""Progress of long edits and their end on request (cases T-CAN-1, T-CAN-5, T-CAN-6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_actions import CONFIRMING, URI, action, apply, rewrite_call

pytestmark = pytest.mark.asyncio

CANCELLED, INVALID_REQUEST = -32800, -32600
CODE = "def area(w, h):\n    return w * h\n"
WHOLE = lsp.area((0, 0), (1, 16))
HELD: dict[str, Any] = {"text": CODE.replace("w * h", "h * w"), "hold": True}
CREATES: dict[str, Callable[[Any], Any]] = {"window/workDoneProgress/create": lambda _params: None}


async def begun(client: lsp.LspClient, through: str, **more: Any) -> dict[str, Any]:
    """A request that the scripted engine has begun to work on."""
    if through == "resolve":
        asked = client.call("codeAction/resolve", await action(client, "simplify", WHOLE))
    elif through == "holes":
        span = lsp.area((1, 11), (1, 16))
        asked = client.call("lacuna/fillHoles", {"textDocument": {"uri": URI}, "ranges": [span]} | more)
    else:
        asked = client.call("workspace/executeCommand", rewrite_call(WHOLE) | more)
    client.send(asked)
    await client.engine_asked(1)
    return asked


def values(client: lsp.LspClient, token: int | str) -> list[dict[str, Any]]:
    """What was reported on the one token so far."""
    reported = client.claim_all("$/progress")
    assert {message["token"] for message in reported} <= {token}
    return [message["value"] for message in reported]


async def test_a_command_reports_on_the_clients_token() -> None:
    drafts = ["", CODE[:8], CODE[:16], CODE[:16]]
    async with lsp.session(HELD | {"drafts": drafts}) as client:
        client.open(CODE)
        asked = await begun(client, "command", workDoneToken="t1")
        begin, *reports = values(client, "t1")
        assert (begin["kind"], begin["title"], begin["cancellable"]) == ("begin", "Lacuna: Rewrite", True)
        assert [report["percentage"] for report in reports] == [25, 50]
        assert reports[0]["message"] == "8 of about 32 characters"
        client.notify("test/release")
        assert apply(CODE, await client.answer(asked)) == HELD["text"]
        assert [value["kind"] for value in values(client, "t1")] == ["end"]
        assert (await client.engine())["requests"][0]["wants_drafts"] is True


async def test_without_a_token_or_the_capability_nothing_is_reported() -> None:
    async with lsp.session(HELD | {"drafts": ["a", "ab"]}) as client:
        client.open(CODE)
        asked = await begun(client, "command")
        client.notify("test/release")
        await client.answer(asked)
        assert (await client.engine())["requests"][0]["wants_drafts"] is False


async def test_a_code_action_that_takes_long_asks_for_a_token() -> None:
    tokens: list[str] = []
    answers: dict[str, Callable[[Any], Any]] = {
        "window/workDoneProgress/create": lambda params: tokens.append(params["token"])
    }
    async with lsp.session(HELD | {"drafts": [CODE[:8]]}, capabilities=CONFIRMING, answers=answers) as client:
        client.open(CODE)
        asked = await begun(client, "resolve")
        begin = (await client.expect("$/progress"))["value"]
        assert (begin["kind"], begin["title"], begin["percentage"]) == ("begin", "Lacuna: Simplify", 25)
        client.notify("test/release")
        assert "edit" in await client.answer(asked)
        assert [value["kind"] for value in values(client, tokens[0])] == ["end"]
        assert len(tokens) == 1


async def test_a_code_action_that_is_quick_asks_for_none() -> None:
    async with lsp.session({"text": HELD["text"]}, capabilities=CONFIRMING) as client:
        client.open(CODE)
        await client.request("codeAction/resolve", await action(client, "simplify", WHOLE))
        # Were a token asked for, or anything reported, the unclaimed message would fail the session.


@pytest.mark.parametrize("through", ["command", "holes"])
async def test_the_button_of_the_clients_token_ends_the_work(through: str) -> None:
    async with lsp.session(HELD, {"text": "x"}) as client:
        client.open(CODE)
        asked = await begun(client, through, workDoneToken=7)
        client.notify("window/workDoneProgress/cancel", {"token": 8})
        client.notify("window/workDoneProgress/cancel", {"token": 7})
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CANCELLED
        assert [value["kind"] for value in values(client, 7)] == ["begin", "end"]
        assert len((await client.engine())["cancelled"]) == 1
        client.notify("window/workDoneProgress/cancel", {"token": 7})
        assert (await client.request("workspace/executeCommand", {"command": "lacuna.status"}))["jobs"] == 0


async def test_the_button_of_a_token_of_ours_ends_the_work() -> None:
    async with lsp.session(HELD, capabilities=CONFIRMING, answers=CREATES) as client:
        client.open(CODE)
        asked = await begun(client, "resolve")
        token = (await client.expect("$/progress"))["token"]
        client.notify("window/workDoneProgress/cancel", {"token": token})
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CANCELLED
        assert [value["kind"] for value in values(client, token)] == ["end"]
        assert len((await client.engine())["cancelled"]) == 1


@pytest.mark.parametrize("through", ["resolve", "command", "holes"])
async def test_a_cancelled_request_stops_the_work_inside_and_the_next_starts_at_once(through: str) -> None:
    async with lsp.session(HELD, {"text": "h * w"}) as client:
        client.open(CODE)
        asked = await begun(client, through)
        client.cancel(asked)
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CANCELLED
        seen = await client.engine()
        assert seen["cancelled"] == [seen["requests"][0]["id"]]
        span = lsp.area((1, 11), (1, 16))
        edit = await client.request("workspace/executeCommand", rewrite_call(span))
        assert apply(CODE, edit) == HELD["text"]
        assert client.claim_all("window/showMessage") == []


async def test_a_cancel_while_holes_are_filled_ends_their_one_request() -> None:
    text = "a = <fill>\nb = <fill>\nc = <fill>\n"
    async with lsp.session({"text": "1"}, {"text": "2", "hold": True}) as client:
        client.open(text)
        asked = client.call("codeAction/resolve", await action(client, "fill_holes", lsp.area((0, 0), (3, 0))))
        client.send(asked)
        await client.engine_asked(1)
        client.cancel(asked)
        with pytest.raises(lsp.ResponseFault):
            await client.answer(asked)
        client.notify("test/release")
        seen = await client.engine()
        assert (len(seen["requests"]), len(seen["cancelled"])) == (1, 1)


@pytest.mark.parametrize("through", ["resolve", "command", "holes"])
async def test_shutdown_answers_an_edit_that_runs_and_refuses_what_comes(through: str) -> None:
    async with lsp.connection(HELD) as client:
        await lsp.initialize(client, lsp.VSCODE)
        client.notify("initialized", {})
        client.open(CODE)
        asked = await begun(client, through)
        down, late = client.call("shutdown", None), client.call("workspace/executeCommand", rewrite_call(WHOLE))
        client.send(down, late)
        assert await client.answer(down) is None
        for message, code in ((asked, CANCELLED), (late, INVALID_REQUEST)):
            with pytest.raises(lsp.ResponseFault) as fault:
                await client.answer(message)
            assert fault.value.code == code
        client.notify("exit")
        assert await client.wait() == 0
        client.check()


async def test_exit_without_shutdown_while_an_edit_runs_ends_with_one() -> None:
    async with lsp.connection(HELD, process=True) as client:
        await lsp.initialize(client, lsp.VSCODE)
        client.notify("initialized", {})
        client.open(CODE)
        await begun(client, "command")
        client.notify("exit")
        assert await client.wait() == 1


async def test_a_newer_edit_of_the_document_takes_the_place_of_the_older() -> None:
    async with lsp.session(HELD, {"text": HELD["text"]}) as client:
        client.open(CODE)
        older = await begun(client, "command")
        edit = await client.request("workspace/executeCommand", rewrite_call(WHOLE))
        assert apply(CODE, edit) == HELD["text"]
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(older)
        assert fault.value.code == CANCELLED
        assert "newer request" in fault.value.message


async def test_settings_that_turn_it_off_end_an_edit_and_say_so() -> None:
    async with lsp.session(HELD) as client:
        client.open(CODE)
        asked = await begun(client, "command")
        client.notify("workspace/didChangeConfiguration", {"settings": {"enable": False}})
        with pytest.raises(lsp.ResponseFault) as fault:
            await client.answer(asked)
        assert fault.value.code == CANCELLED
        assert "turned off" in fault.value.message


async def test_each_of_several_holes_has_its_share_of_the_way() -> None:
    text = "a = \nb = \nc = \n"
    half = "x" * 40
    async with lsp.session({"text": half, "drafts": [half]}) as client:
        client.open(text)
        places = [lsp.area((line, 4), (line, 4)) for line in range(3)]
        params = {"textDocument": {"uri": URI}, "ranges": places, "workDoneToken": "t"}
        await client.request("lacuna/fillHoles", params)
        begin, *reports, end = values(client, "t")
        assert (begin["title"], end["kind"]) == ("Lacuna: Fill 3 holes", "end")
        assert [report["percentage"] for report in reports] == [16, 50, 83]
        assert [report["message"].split(", ")[1] for report in reports] == ["1 of 3", "2 of 3", "3 of 3"]
