"""Settings pulled from the editor or pushed by it, and what they turn off (cases T-CFG, T-CTX-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio


async def settled(client: lsp.LspClient) -> None:
    """Until the editor's settings are there nothing is offered."""
    while await client.inline(0, 8) is None:
        pass


async def test_nothing_is_offered_or_asked_before_the_settings_are_known() -> None:
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    async with lsp.session({"text": "a"}, capabilities=capabilities) as client:
        uri, whole = "file:///w/a.py", lsp.area((0, 0), (0, 5))
        client.open("x = 1\n")
        context = {"diagnostics": [], "triggerKind": 1}
        params = {"textDocument": {"uri": uri}, "range": whole, "context": context}
        assert await client.request("textDocument/codeAction", params) == []
        assert (await client.request("textDocument/completion", lsp.place(uri, 0, 5)))["items"] == []
        rewrite = {"uri": uri, "range": whole, "instruction": "rename x"}
        command = {"command": "lacuna.rewrite", "arguments": [rewrite]}
        assert await client.request("workspace/executeCommand", command) is None
        assert "settings" in (await client.expect("window/showMessage"))["message"]
        assert await client.request("lacuna/fillHoles", {"textDocument": {"uri": uri}, "ranges": [whole]}) is None
        assert "settings" in (await client.expect("window/showMessage"))["message"]
        assert (await client.engine())["requests"] == []
        (asked,) = [each for each in client.unclaimed if each["method"] == "workspace/configuration"]
        client.unclaimed.remove(asked)
        client.send({"jsonrpc": "2.0", "id": asked["id"], "result": [{"enable": True}]})
        while not await client.request("textDocument/codeAction", params):
            pass


async def _question(client: lsp.LspClient) -> str:
    """The id of the server's question for settings, which this editor has not answered."""
    while True:
        await client.engine()
        for message in client.unclaimed:
            if message["method"] == "workspace/configuration":
                client.unclaimed.remove(message)
                return str(message["id"])


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(("section", "offered"), [({"enable": True}, "a"), ({"enable": False}, None), (None, "a")])
async def test_ghost_text_asked_for_before_the_settings_is_answered_by_them(
    section: Any, offered: str | None, kind: int
) -> None:
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    async with lsp.session({"text": "a"}, capabilities=capabilities) as client:
        client.open("total = ")
        ghost = client.ghost(0, 8, triggerKind=kind)
        client.send(ghost)
        question = await _question(client)
        assert (await client.engine())["requests"] == []
        client.send({"jsonrpc": "2.0", "id": question, "result": [section]})
        answer = await client.answer(ghost)
        assert (answer["items"][0]["insertText"] if answer else None) == offered


async def test_what_waits_for_the_settings_ends_with_a_newer_question_a_key_and_a_cancel() -> None:
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    async with lsp.session({"text": "a"}, capabilities=capabilities) as client:
        client.open("total = ")
        older, newer, last = (client.ghost(0, 8) for _ in range(3))
        client.send(older, newer)
        assert await client.answer(older) is None
        client.send(lsp.change(2, "x", lsp.area((0, 0), (0, 0))))
        assert await client.answer(newer) is None
        client.send(last)
        client.cancel(last)
        with pytest.raises(lsp.ResponseFault, match="ancel"):
            await client.answer(last)
        client.send({"jsonrpc": "2.0", "id": await _question(client), "result": [None]})
        await settled(client)
        assert len((await client.engine())["requests"]) == 1


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
        await settled(client)
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
        await settled(client)
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
        client.claim_all("window/logMessage")


@pytest.mark.parametrize("answer", [[None], [], lsp.ResponseFault(-32601, "no such method")])
async def test_an_editor_that_refuses_keeps_the_settings(answer: Any) -> None:
    capabilities = lsp.VSCODE | {"workspace": {"configuration": True}}
    answers = {"workspace/configuration": lambda params: answer}
    options = {"inlineCompletion": {"maxTokens": 11}}
    async with lsp.session({"text": "a"}, capabilities=capabilities, answers=answers, options=options) as client:
        client.open("total = ")
        await settled(client)
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


FOLDERS = ("file:///w/app", "file:///w/app2")
MULTI_ROOT = lsp.VSCODE | {"workspace": {"configuration": True, "workspaceFolders": True}}


class Sections:
    """An editor's settings by scope; None is the section for all."""

    def __init__(self, **tokens: int) -> None:
        self.tokens: dict[str | None, int] = {f"file:///w/{name}": count for name, count in tokens.items()}
        self.asked: list[list[str | None]] = []

    def __call__(self, params: Any) -> list[Any]:
        scopes = [item.get("scopeUri") for item in params["items"]]
        self.asked.append(scopes)
        given = [self.tokens.get(scope) for scope in scopes]
        return [count and {"inlineCompletion": {"maxTokens": count}} for count in given]


async def tokens_asked(client: lsp.LspClient, uri: str) -> int:
    """With which budget a completion in `uri` goes to the engine."""
    # Opened anew, so that the answer is not the one remembered.
    client.open("total = ", uri)
    await client.inline(0, 8, uri)
    tokens: int = (await client.engine())["requests"][-1]["max_tokens"]
    return tokens


async def test_each_folder_has_its_own_settings_until_it_is_removed() -> None:
    sections = Sections(app=11, app2=22)
    answers = {"workspace/configuration": sections}
    async with lsp.session({"text": "a"}, capabilities=MULTI_ROOT, folders=FOLDERS, answers=answers) as client:
        uris = ("file:///w/app/x.py", "file:///w/app2/x.py", "file:///w/app2x.py")
        for uri in uris:
            client.open("total = ", uri)
        while not sections.asked:
            await client.inline(0, 8, uris[0])
        assert [await tokens_asked(client, uri) for uri in uris] == [11, 22, 96]
        event: dict[str, Any] = {"added": [], "removed": [{"uri": FOLDERS[1], "name": "app2"}]}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        assert [await tokens_asked(client, uri) for uri in uris] == [11, 96, 96]
        assert sections.asked == [[None, *FOLDERS]]


async def test_a_folder_that_comes_later_is_asked_for() -> None:
    sections = Sections(app=11, late=33)
    answers = {"workspace/configuration": sections}
    async with lsp.session({"text": "a"}, capabilities=MULTI_ROOT, folders=FOLDERS[:1], answers=answers) as client:
        client.open("total = ", "file:///w/late/x.py")
        event: dict[str, Any] = {"added": [{"uri": "file:///w/late", "name": "late"}], "removed": []}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        while len(sections.asked) < 2:
            await client.inline(0, 8, "file:///w/late/x.py")
        assert await tokens_asked(client, "file:///w/late/x.py") == 33


async def test_a_push_asks_again_for_the_folders_only() -> None:
    sections = Sections(app=11)
    answers = {"workspace/configuration": sections}
    async with lsp.session({"text": "a"}, capabilities=MULTI_ROOT, folders=FOLDERS, answers=answers) as client:
        for folder in FOLDERS:
            client.open("total = ", f"{folder}/x.py")
        while not sections.asked:
            await client.inline(0, 8, f"{FOLDERS[0]}/x.py")
        sections.tokens["file:///w/app"] = 12
        client.notify("workspace/didChangeConfiguration", {"settings": {"inlineCompletion": {"maxTokens": 44}}})
        while len(sections.asked) < 2:
            await client.inline(0, 8, f"{FOLDERS[0]}/x.py")
        assert [await tokens_asked(client, f"{folder}/x.py") for folder in FOLDERS] == [12, 44]


async def test_a_fault_in_a_folder_s_settings_is_reported_with_the_folder() -> None:
    def configuration(params: Any) -> list[Any]:
        return [{"nonsense": 1}, {"nonsense": 1, "context": {"prefixChars": -1}}]

    answers = {"workspace/configuration": configuration}
    async with lsp.session(capabilities=MULTI_ROOT, folders=FOLDERS[:1], answers=answers) as client:
        warning = (await client.expect("window/logMessage"))["message"]
        assert warning.count("nonsense") == 1
        assert "context.prefixChars in file:///w/app: must lie between" in warning


async def test_initialization_options_and_pushes_reach_an_editor_that_cannot_be_asked() -> None:
    options = {"inlineCompletion": {"maxTokens": 7, "deadlineMs": "soon"}}
    async with lsp.session({"text": "a"}, options=options, folders=FOLDERS) as client:
        client.open("total = ", "file:///w/app/x.py")
        assert await tokens_asked(client, "file:///w/app/x.py") == 7
        warning = (await client.expect("window/logMessage"))["message"]
        assert "inlineCompletion.deadlineMs: must be a whole number, not a string; using 6000" in warning
        client.notify("workspace/didChangeConfiguration", {"settings": {"lacuna": {"inlineCompletion": {}}}})
        assert await tokens_asked(client, "file:///w/app/x.py") == 7


@pytest.mark.parametrize("pushed", [5, "x", [1], {"lacuna": 5}])
async def test_pushed_settings_that_are_no_object_are_reported(pushed: Any) -> None:
    async with lsp.session({"text": "a"}, options={"inlineCompletion": {"maxTokens": 11}}) as client:
        client.open("total = ")
        client.notify("workspace/didChangeConfiguration", {"settings": pushed})
        assert "lacuna: must be an object" in (await client.expect("window/logMessage"))["message"]
        await client.inline(0, 8)
        assert (await client.engine())["requests"][-1]["max_tokens"] == 11


async def test_numbers_of_any_size_leave_the_server_alive() -> None:
    async with lsp.session({"text": "a"}, options={"rewrite": {"maxTokens": 10**400}}) as client:
        assert "rewrite.maxTokens: must lie" in (await client.expect("window/logMessage"))["message"]
        client.notify("workspace/didChangeConfiguration", {"settings": {"rewrite": {"deadlineMs": -(10**400)}}})
        assert "rewrite.deadlineMs: must lie" in (await client.expect("window/logMessage"))["message"]
        client.open("total = ")
        assert (await client.inline(0, 8))[0]["insertText"] == "a"
