"""What code actions are offered, and what becomes of those at diagnostics and instructions (case T-ACT-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import lsp_client as lsp
from tests.fakes.lsp_actions import CONFIRMING, URI, action, actions, apply, edit_of, selected

pytestmark = pytest.mark.asyncio

CODE = "def area(w, h):\n    return w * h\n"
# With a text around that tells what a selection is about.
USED = CODE + "\n\nprint(area(2, 3))\n"
WHOLE = lsp.area((0, 0), (1, 16))
REWRITES = [
    f"refactor.rewrite.lacuna.{name}" for name in ("fill", "docstring", "type_hints", "simplify", "error_handling")
]
AUTOMATIC, INVOKED = 2, 1
PROBLEM = {"range": lsp.area((1, 11), (1, 12)), "message": "name 'w' is not defined", "severity": 1, "code": "F821"}


def kinds(listed: list[dict[str, Any]]) -> list[str]:
    return [item["kind"] for item in listed]


async def test_a_selection_offers_the_rewrites_without_asking_the_engine() -> None:
    async with lsp.session() as client:
        client.open(USED)
        listed = await actions(client, WHOLE)
        assert kinds(listed) == REWRITES
        assert listed[0]["title"] == "Fill selection from surroundings"
        assert all("edit" not in item and "command" not in item and item["tags"] == [1] for item in listed)
        assert (await client.engine())["requests"] == []


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (["quickfix"], ["quickfix.lacuna"]),
        (["refactor"], REWRITES),
        (["refactor.rewrite"], REWRITES),
        (["refactor.rewrite.lacuna.fill"], REWRITES[:1]),
        (["refactor.rewrite.lac"], []),
        (["source", "refactor.rewrite.lacuna.simplify"], REWRITES[3:4]),
        ([], []),
        (None, ["quickfix.lacuna", *REWRITES]),
    ],
)
async def test_only_the_kinds_asked_for_are_offered(only: list[str] | None, expected: list[str]) -> None:
    async with lsp.session(capabilities=CONFIRMING) as client:
        client.open(USED)
        context = {"diagnostics": [PROBLEM]} | ({} if only is None else {"only": only})
        listed = await actions(client, WHOLE, **context)
        assert kinds(listed) == expected
        for item in listed:
            assert "isPreferred" not in item
            assert ("diagnostics" in item) == item["kind"].startswith("quickfix")


async def test_every_kind_offered_was_announced() -> None:
    async with lsp.connection() as client:
        capabilities = await lsp.initialize(client, CONFIRMING)
        provider = capabilities["codeActionProvider"]
        assert provider["resolveProvider"] is True
        assert {*REWRITES, "quickfix.lacuna", "refactor.rewrite.lacuna.own"} <= set(provider["codeActionKinds"])
        assert capabilities["executeCommandProvider"]["workDoneProgress"] is True
        assert await client.leave() == 0


async def test_no_selection_no_actions() -> None:
    async with lsp.session() as client:
        client.open(CODE)
        assert await actions(client, lsp.area((0, 3), (0, 3)), triggerKind=AUTOMATIC) == []
        assert await actions(client, lsp.area((0, 3), (0, 3))) == []
        # What is blank can only be filled.
        assert kinds(await actions(client, lsp.area((1, 0), (1, 4)))) == REWRITES[:1]


async def test_a_client_that_cannot_resolve_edits_is_offered_none() -> None:
    async with lsp.session(capabilities={}) as client:
        client.open(CODE)
        assert await actions(client, WHOLE, diagnostics=[PROBLEM]) == []


async def test_clients_that_know_no_tag_get_none() -> None:
    plain = {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}
    async with lsp.session(capabilities={"textDocument": {"codeAction": plain}}) as client:
        client.open(CODE)
        assert all("tags" not in item for item in await actions(client, WHOLE))


@pytest.mark.parametrize("trigger", [AUTOMATIC, INVOKED])
async def test_a_diagnostic_is_fixed_on_its_lines(trigger: int) -> None:
    async with lsp.session({"text": "return h * h"}) as client:
        client.open(CODE)
        cursor = lsp.area((1, 11), (1, 11))
        (offered,) = await actions(client, cursor, diagnostics=[PROBLEM], triggerKind=trigger)
        assert offered["kind"] == "quickfix.lacuna"
        assert offered["title"] == "Fix: name 'w' is not defined"
        assert offered["diagnostics"] == [PROBLEM]
        resolved = await client.request("codeAction/resolve", offered)
        assert apply(CODE, resolved.pop("edit")) == CODE.replace("w * h", "h * h")
        assert resolved == offered
        (request,) = (await client.engine())["requests"]
        assert request["selection"] == "    return w * h"
        assert request["instruction"] == "Fix this problem at `w`: name 'w' is not defined"


async def test_each_diagnostic_has_its_own_fix_and_a_selection_around_it_is_used() -> None:
    other = {"range": lsp.area((0, 0), (0, 3)), "message": "missing docstring"}
    async with lsp.session({"text": "x"}) as client:
        client.open(CODE)
        listed = await actions(client, WHOLE, diagnostics=[PROBLEM, other], only=["quickfix"])
        assert [item["diagnostics"] for item in listed] == [[PROBLEM], [other]]
        await client.request("codeAction/resolve", listed[1])
        assert (await client.engine())["requests"][0]["selection"] == CODE[:-1]


async def test_a_secret_file_is_offered_nothing_or_a_reason() -> None:
    for capabilities, trigger, expected in (
        (lsp.VSCODE, INVOKED, 0),
        (CONFIRMING, AUTOMATIC, 0),
        (CONFIRMING, INVOKED, 1),
    ):
        async with lsp.session(capabilities=capabilities) as client:
            client.open("KEY=1\n", "file:///w/.env")
            params = selected(lsp.area((0, 0), (0, 5)), "file:///w/.env", triggerKind=trigger)
            listed = await client.request("textDocument/codeAction", params)
            assert len(listed) == expected
            assert all("not given to the engine" in item["disabled"]["reason"] for item in listed)


async def test_a_selection_that_is_sure_to_be_cut_off_is_disabled_where_that_can_be_shown() -> None:
    text = "value = 1\n" * 20
    options = {"rewrite": {"maxTokens": 16}}
    for capabilities, unusable in ((lsp.VSCODE, 0), (CONFIRMING, 4)):
        async with lsp.session(capabilities=capabilities, options=options) as client:
            client.open(f"{text}print(value)\n")
            listed = await actions(client, lsp.area((0, 0), (20, 0)))
            disabled = [item for item in listed if "disabled" in item]
            assert len(disabled) == unusable
            assert all("rewrite.maxTokens" in item["disabled"]["reason"] for item in disabled)
            assert all("data" not in item for item in disabled)
            assert kinds([item for item in listed if "disabled" not in item]) == REWRITES[:1]


async def test_a_persons_own_actions_are_offered_in_their_languages() -> None:
    own = [
        {"title": "Use pathlib", "instruction": "Use pathlib instead of os.path.", "languages": ["python"]},
        {"title": "Use const", "instruction": "Use const.", "languages": ["javascript"]},
    ]
    async with lsp.session({"text": "x = 1"}, options={"actions": own}) as client:
        client.open("x = 2\n")
        (offered,) = await actions(client, lsp.area((0, 0), (0, 5)), only=["refactor.rewrite.lacuna.own"])
        assert offered["title"] == "Use pathlib"
        edit = (await client.request("codeAction/resolve", offered))["edit"]
        assert apply("x = 2\n", edit) == "x = 1\n"
        assert (await client.engine())["requests"][0]["instruction"] == "Use pathlib instead of os.path."


INSTRUCTED = "import os\n\n# lacuna: return the sum\ndef f(a, b):\n    return a\n\n\nx = 1\n"
FOLLOWED = "import os\n\ndef f(a, b):\n    return a + b\n\n\nx = 1\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("span", [lsp.area((2, 3), (2, 3)), lsp.area((2, 0), (4, 12)), lsp.area((2, 0), (5, 0))])
async def test_an_instruction_in_a_comment_is_followed_and_goes(span: dict[str, Any], newline: str) -> None:
    async with lsp.session({"text": "def f(a, b):\n    return a + b"}) as client:
        text = INSTRUCTED.replace("\n", newline)
        client.open(text)
        offered = await action(client, "comment", span)
        assert offered["title"] == "Rewrite: return the sum"
        resolved = await client.request("codeAction/resolve", offered)
        assert apply(text, resolved["edit"]) == FOLLOWED.replace("\n", newline)
        (request,) = (await client.engine())["requests"]
        assert request["instruction"] == "return the sum"
        assert "lacuna" not in request["before"] + request["selection"] + request["after"]


async def test_an_instruction_with_no_code_below_is_written_in_its_place() -> None:
    text = "def f(a, b):\n    # lacuna: return the sum\n\n\nx = 1\n"
    async with lsp.session({"text": "return a + b"}) as client:
        client.open(text)
        cursor = lsp.area((1, 8), (1, 8))
        offered = await action(client, "comment", cursor)
        assert offered["title"] == "Write: return the sum"
        edit = (await client.request("codeAction/resolve", offered))["edit"]
        assert apply(text, edit) == "def f(a, b):\n    return a + b\n\n\nx = 1\n"
        (request,) = (await client.engine())["requests"]
        assert (request["type"], request["prefix"]) == ("Fill", "def f(a, b):\n    # return the sum\n    ")


async def test_an_instruction_brings_no_light_bulb_of_its_own() -> None:
    async with lsp.session() as client:
        client.open(INSTRUCTED)
        cursor = lsp.area((2, 3), (2, 3))
        assert await actions(client, cursor, triggerKind=AUTOMATIC) == []
        assert kinds(await actions(client, cursor)) == ["refactor.rewrite.lacuna.comment"]
        assert await actions(client, lsp.area((7, 0), (7, 0))) == []


async def test_an_instruction_followed_to_the_letter_that_changes_nothing_stays() -> None:
    async with lsp.session({"text": "def f(a, b):\n    return a"}) as client:
        client.open(INSTRUCTED)
        offered = await action(client, "comment", lsp.area((2, 3), (2, 3)))
        assert await client.request("codeAction/resolve", offered) == offered
        assert "nothing to change" in (await client.expect("window/showMessage"))["message"]


@pytest.mark.parametrize("confirm", [True, False])
async def test_edits_are_annotated_where_the_client_honours_it(confirm: bool) -> None:
    options = {"rewrite": {"confirm": confirm}}
    async with lsp.session({"text": "x = 2\ny = 1\nz = 2"}, capabilities=CONFIRMING, options=options) as client:
        client.open("x = 1\ny = 1\nz = 1\n")
        edit = await edit_of(client, "simplify", lsp.area((0, 0), (3, 0)))
        (name, annotation), *others = edit["changeAnnotations"].items()
        assert others == []
        assert (annotation["label"], annotation["needsConfirmation"]) == ("Lacuna: Simplify", confirm)
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": URI, "version": 1}
        assert [item["annotationId"] for item in change["edits"]] == [name, name]
        assert apply("x = 1\ny = 1\nz = 1\n", edit, without=0) == "x = 1\ny = 1\nz = 2\n"


async def test_a_client_without_annotations_gets_none() -> None:
    async with lsp.session({"text": "x = 2"}) as client:
        client.open("x = 1\n")
        edit = await edit_of(client, "simplify", lsp.area((0, 0), (1, 0)))
        assert "changeAnnotations" not in edit
        assert all("annotationId" not in item for item in edit["documentChanges"][0]["edits"])


async def test_own_actions_that_make_no_sense_are_reported_with_their_path() -> None:
    async with lsp.session(options={"actions": [{"title": "T"}]}) as client:
        said = (await client.expect("window/logMessage"))["message"]
        assert "actions: entry 1 must have text as its instruction; using []" in said


# A client that knows code actions, but neither `data` nor `resolve`.
SIMPLE: dict[str, Any] = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}


@pytest.mark.parametrize("answer", [{"applied": True}, {"applied": False}, lsp.ResponseFault(-32601, "no")])
async def test_a_client_that_cannot_resolve_has_the_edit_sent_to_it(answer: Any) -> None:
    sent: list[dict[str, Any]] = []

    def take(params: dict[str, Any]) -> Any:
        sent.append(params)
        return answer

    answers = {"workspace/applyEdit": take}
    async with lsp.session({"text": CODE.replace("w * h", "h * w")}, capabilities=SIMPLE, answers=answers) as client:
        client.open(CODE)
        offered = await action(client, "simplify", WHOLE)
        assert "data" not in offered
        command = offered["command"]
        call = {"command": command["command"], "arguments": command["arguments"]}
        assert await client.request("workspace/executeCommand", call) is None
        (params,) = sent
        assert params["label"] == "Lacuna: Simplify"
        assert apply(CODE, params["edit"]) == CODE.replace("w * h", "h * w")
        said = [shown["message"] for shown in client.claim_all("window/showMessage")]
        assert [("did not take" in message) for message in said] == ([] if answer == {"applied": True} else [True])


async def test_a_command_of_an_older_version_is_refused_and_one_that_was_damaged_too() -> None:
    async with lsp.session({"text": "x"}, capabilities=SIMPLE) as client:
        client.open(CODE)
        command = (await action(client, "simplify", WHOLE))["command"]
        client.send(lsp.change(2, "z", lsp.area((1, 11), (1, 12))))
        for arguments, code in ((command["arguments"], -32801), ([{"title": "Simplify"}], -32602), ([], -32602)):
            with pytest.raises(lsp.ResponseFault) as fault:
                await client.request("workspace/executeCommand", {"command": "lacuna.apply", "arguments": arguments})
            assert fault.value.code == code
        assert (await client.engine())["requests"] == []


async def test_a_docstring_is_all_that_documenting_adds() -> None:
    documented = 'def area(w, h):\n    """The area."""\n    return w + h'
    async with lsp.session({"text": documented}, capabilities=CONFIRMING) as client:
        client.open(CODE)
        edit = await edit_of(client, "docstring", WHOLE)
        assert apply(CODE, edit) == 'def area(w, h):\n    """The area."""\n    return w * h\n'


async def test_a_body_to_complete_is_filled_from_both_sides() -> None:
    code = "def area(w, h):\n    pass\n\n\nprint(area(2, 3))\n"
    async with lsp.session({"text": "return w * h"}, capabilities=CONFIRMING) as client:
        client.open(code)
        edit = await edit_of(client, "complete_body", lsp.area((0, 0), (2, 0)))
        assert apply(code, edit) == code.replace("pass", "return w * h")
        (request,) = (await client.engine())["requests"]
        assert request["type"] == "Fill"
        assert (request["prefix"][-4:], request["suffix"][:4]) == ("    ", "\n\n\np")


async def test_a_body_that_is_no_stub_is_completed_by_instruction() -> None:
    code = "function area(w, h) {}\n"
    async with lsp.session({"text": "function area(w, h) { return w * h; }"}) as client:
        client.open(code, language="typescript")
        await edit_of(client, "complete_body", lsp.area((0, 0), (0, 22)))
        (request,) = (await client.engine())["requests"]
        assert request["type"] == "Rewrite"


async def test_a_function_of_a_docstring_gets_its_body_on_a_line_of_its_own() -> None:
    code = 'def area(w, h):\r\n    """The area."""\r\n\r\n\r\nprint(area(2, 3))\r\n'
    async with lsp.session({"text": "size = w * h\n    return size"}, capabilities=CONFIRMING) as client:
        client.open(code)
        edit = await edit_of(client, "complete_body", lsp.area((0, 0), (2, 0)))
        body = '"""\r\n    size = w * h\r\n    return size\r\n\r\n\r\np'
        assert apply(code, edit) == code.replace('"""\r\n\r\n\r\np', body)
        (request,) = (await client.engine())["requests"]
        assert request["type"] == "Fill"
        assert request["prefix"].endswith('    """The area."""\n    ')
        assert request["suffix"].startswith("\n\n\nprint")


async def test_what_is_offered_as_a_body_to_complete_is_one() -> None:
    for code, is_offered in (
        ("def f(x): pass\n", True),
        ("def f(x): ...\n", True),
        ("def f(x):\r    pass\r", True),
        ("def f(x):\r\n    ...\r\n", True),
        ('s = """\ndef f(x):\n    pass\n"""\n', False),
        ("class A:\n    pass\n", False),
    ):
        async with lsp.session(capabilities=CONFIRMING) as client:
            client.open(code)
            offered = kinds(await actions(client, lsp.area((0, 0), (9, 0))))
            assert ("refactor.rewrite.lacuna.complete_body" in offered) is is_offered


async def test_nothing_is_filled_where_nothing_is_around() -> None:
    async with lsp.session({"text": "x"}, capabilities=CONFIRMING) as client:
        client.open("\n  <fill>\n")
        assert not {kind for kind in kinds(await actions(client, lsp.area((0, 0), (2, 0)))) if "fill" in kind}
        text = {"textDocument": {"uri": URI}, "ranges": [lsp.area((1, 2), (1, 8))]}
        assert await client.request("lacuna/fillHoles", text) is None
        told = await client.expect("window/showMessage")
        assert "no text around the gap" in told["message"]
        assert (await client.engine())["requests"] == []


async def test_a_selection_that_parts_words_is_rewritten_with_the_whole_words() -> None:
    code = "total = amount + rest\n"
    async with lsp.session({"text": "total = rest"}, capabilities=CONFIRMING) as client:
        client.open(code)
        await edit_of(client, "simplify", lsp.area((0, 2), (0, 19)))
        (request,) = (await client.engine())["requests"]
        assert request["selection"] == "total = amount + rest"
        assert kinds(await actions(client, lsp.area((0, 2), (0, 3)))) == REWRITES[:1]


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({"message": {"kind": "markdown", "value": "use **area**\0"}}, "Fix: use **area**"),
        ({"message": " \n", "source": "ruff", "code": "F821"}, "Fix: ruff F821"),
        ({"message": "", "code": 7}, "Fix: 7"),
        ({"message": ""}, None),
        ({"message": None}, None),
    ],
)
async def test_a_fix_is_called_what_its_diagnostic_says(more: dict[str, Any], title: str | None) -> None:
    diagnostic = {"range": PROBLEM["range"]} | more
    async with lsp.session(capabilities=CONFIRMING) as client:
        client.open(CODE)
        listed = await actions(client, lsp.area((1, 11), (1, 11)), diagnostics=[diagnostic])
        assert [item["title"] for item in listed] == ([] if title is None else [title])
