"""Settings pulled from the editor or pushed by it, and what they turn off (cases T-CFG, T-CTX-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio


async def test_settings_are_pulled_where_the_editor_can_be_asked() -> None:
    section: dict[str, Any] = {"inlineCompletion": {"maxTokens": 11}}
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    asked: list[Any] = []

    def configuration(params: Any) -> list[Any]:
        asked.append(params)
        return [section]

    answers = {"workspace/configuration": configuration}
    async with lsp.session({"text": "a"}, capabilities=capabilities, answers=answers) as client:
        client.open("total = ")
        section["inlineCompletion"] = {"maxTokens": 23}
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        while len(asked) < 2:
            await client.inline(0, 8)
        await client.inline(0, 8)
        assert (await client.engine())["requests"][-1]["max_tokens"] == 23
        assert asked[0] == {"items": [{"section": "lacuna"}]}


async def test_no_engine_is_started_before_the_settings_are_known() -> None:
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    answers = {"workspace/configuration": lambda params: [{"enable": False}]}
    async with lsp.session({"text": "a"}, capabilities=capabilities, answers=answers, state="off") as client:
        client.open("total = ")
        assert await client.inline(0, 8) is None
        assert (await client.engine())["starts"] == 0
        client.answers["workspace/configuration"] = lambda params: [{"enable": True}]
        client.notify("workspace/didChangeConfiguration", {"settings": {}})
        while (await client.engine())["starts"] == 0:
            pass
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
        client.claim_all("window/logMessage")


@pytest.mark.parametrize("answer", [[None], [], lsp.ResponseFault(-32601, "no such method")])
async def test_an_editor_that_refuses_keeps_the_settings(answer: Any) -> None:
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    answers = {"workspace/configuration": lambda params: answer}
    options = {"inlineCompletion": {"maxTokens": 11}}
    async with lsp.session({"text": "a"}, capabilities=capabilities, answers=answers, options=options) as client:
        client.open("total = ")
        await client.inline(0, 8)
        assert (await client.engine())["requests"][-1]["max_tokens"] == 11


@pytest.mark.parametrize("wrapped", [True, False])
async def test_pushed_settings_count_for_the_next_request(wrapped: bool) -> None:
    async with lsp.session({"text": "a"}) as client:
        client.open("total = ")
        pushed: dict[str, Any] = {"inlineCompletion": {"deadlineMs": 1234, "nonsense": 1}}
        client.notify("workspace/didChangeConfiguration", {"settings": {"lacuna": pushed} if wrapped else pushed})
        await client.inline(0, 8)
        assert (await client.engine())["requests"][-1]["deadline_ms"] == 1234
        warning = await client.expect("window/logMessage")
        assert warning["type"] == 2
        assert "inlineCompletion.nonsense" in warning["message"]


async def test_changes_of_the_configuration_are_registered_for() -> None:
    capabilities = lsp.VSCODE | {"workspace": {"didChangeConfiguration": {"dynamicRegistration": True}}}
    registered: list[Any] = []
    answers = {"client/registerCapability": registered.append}
    async with lsp.session(capabilities=capabilities, answers=answers) as client:
        while not registered:
            await client.inline(0, 0)
        (registration,) = registered[0]["registrations"]
        assert registration["method"] == "workspace/didChangeConfiguration"


async def test_languages_and_files_can_be_turned_off() -> None:
    options = {"disabledLanguages": ["plaintext"], "disabledFiles": ["*.md"]}
    async with lsp.session({"text": "a"}, options=options) as client:
        client.open("Dear ", "file:///w/letter.txt", "plaintext")
        client.open("# Title", "file:///w/notes.md", "markdown")
        assert await client.inline(0, 5, "file:///w/letter.txt") is None
        assert await client.inline(0, 7, "file:///w/notes.md") is None
        assert (await client.engine())["requests"] == []


async def test_comments_can_be_left_out() -> None:
    options = {"inlineCompletion": {"inComments": False}}
    async with lsp.session({"text": "a"}, options=options) as client:
        client.open('# todo \ns = "abc"\nx = 1  # c\ny = ')
        assert await client.inline(0, 7) is None
        assert await client.inline(1, 8) is None
        assert await client.inline(3, 4) is not None
