"""Typing at the wire: through an offer and back, undo, alternatives, accepting (cases T-RACE, T-CTX, T-CAN, T-POP)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import lsp_client as lsp

pytestmark = pytest.mark.asyncio

AUTOMATIC, INVOKED = 2, 1
URI = "file:///w/a.py"
# Every request a test makes is one of its own, however fast they follow each other.
NO_PAUSE = {"inlineCompletion": {"debounceMs": 0}}


class Typist:
    """Somebody at the end of the first line, who types, goes back, and gets what comes by itself."""

    def __init__(self, client: lsp.LspClient, text: str, language: str = "python", uri: str = URI) -> None:
        self.client, self.uri = client, uri
        self.column, self.version = len(text.partition("\n")[0]), 1
        client.open(text, uri, language)

    def type(self, text: str) -> None:
        span = lsp.area((0, self.column), (0, self.column))
        self._change(text, span)
        self.column += len(text)

    def back(self, count: int = 1) -> None:
        self._change("", lsp.area((0, self.column - count), (0, self.column)))
        self.column -= count

    def _change(self, text: str, span: dict[str, Any]) -> None:
        self.version += 1
        self.client.send(lsp.change(self.version, text, span, self.uri))

    async def sees(self, trigger: int = AUTOMATIC) -> list[str]:
        """The texts offered at the cursor, all of them to be put there."""
        items = await self.client.inline(0, self.column, self.uri, triggerKind=trigger) or []
        place = (0, self.column)
        assert all(item["range"] == lsp.area(place, place) for item in items)
        return [item["insertText"] for item in items]

    async def calls(self) -> int:
        return len((await self.client.engine())["requests"])


async def status(client: lsp.LspClient) -> dict[str, Any]:
    result: dict[str, Any] = await client.request("workspace/executeCommand", {"command": "lacuna.status"})
    return result


async def test_typing_through_an_offer_asks_no_engine_and_leaving_it_does() -> None:
    async with lsp.session({"text": "obar(1)"}, {"text": "oo"}, options=NO_PAUSE) as client:
        typist = Typist(client, "fo")
        assert await typist.sees() == ["obar(1)"]
        for letter, left in [("o", "bar(1)"), ("b", "ar(1)"), ("a", "r(1)")]:
            typist.type(letter)
            assert await typist.sees() == [left]
        assert await typist.calls() == 1
        typist.type("z")
        assert await typist.sees() == ["oo"]
        assert await typist.calls() == 2
        assert (await status(client))["suggestions"] == {"shown": 2, "accepted": 0, "recalled": 3}


async def test_an_offer_grows_back_over_a_backspace() -> None:
    async with lsp.session({"text": "obar(1)"}, {"text": "never"}, options=NO_PAUSE) as client:
        typist = Typist(client, "fo")
        await typist.sees()
        typist.type("o")
        typist.type("b")
        typist.back()
        assert await typist.sees() == ["bar(1)"]
        typist.back()
        assert await typist.sees() == ["obar(1)"]
        # The same letter again brings back an older text too, and is no undo.
        typist.type("o")
        assert await typist.sees() == ["bar(1)"]
        assert await typist.calls() == 1


async def test_a_mistyped_letter_taken_back_shows_the_offer_again() -> None:
    async with lsp.session({"text": "obar(1)"}, {"text": "other"}, options=NO_PAUSE) as client:
        typist = Typist(client, "fo")
        assert await typist.sees() == ["obar(1)"]
        typist.type("z")
        typist.back()
        assert await typist.sees() == ["obar(1)"]
        for letter in "zy":
            typist.type(letter)
        typist.back()
        # Here nothing was offered, and what was taken back is not asked for anew.
        assert await typist.sees() == []
        typist.back()
        assert await typist.sees() == ["obar(1)"]
        assert await typist.calls() == 1


async def test_a_mistyped_bracket_goes_with_the_closer_the_editor_added() -> None:
    async with lsp.session({"text": "obar(1)"}, {"text": "never"}, options=NO_PAUSE) as client:
        typist = Typist(client, "fo")
        await typist.sees()
        typist.type("()")
        typist.back(2)
        assert await typist.sees() == ["obar(1)"]
        assert await typist.calls() == 1


async def test_several_letters_that_go_at_once_are_an_undo_whatever_was_offered() -> None:
    async with lsp.session({"text": "obar(1)"}, {"text": "never"}, options=NO_PAUSE) as client:
        typist = Typist(client, "fo")
        await typist.sees()
        typist.type("zy")
        typist.back(2)
        assert await typist.sees() == []
        assert await typist.calls() == 1


async def test_all_of_an_offer_taken_back_is_an_undo_though_it_is_one_letter() -> None:
    async with lsp.session({"text": "o"}, {"text": "never"}, options=NO_PAUSE) as client:
        typist = Typist(client, "fo")
        assert await typist.sees() == ["o"]
        typist.type("o")
        typist.back()
        assert await typist.sees() == []


async def test_the_same_start_with_another_end_or_language_is_another_place() -> None:
    async with lsp.session({"text": "a"}, {"text": "b"}, {"text": "c"}, options=NO_PAUSE) as client:
        typist = Typist(client, "f()\n")
        typist.column = 2
        assert await typist.sees() == ["a"]
        client.send(lsp.change(2, ", 2", lsp.area((0, 2), (0, 2))))
        assert await typist.sees() == ["b"]
        other = Typist(client, "f()\n", "ruby", "file:///w/a.rb")
        other.column = 2
        assert await other.sees() == ["c"]
        assert await typist.calls() == 3


async def test_who_asks_gets_several_and_a_dismissed_one_again() -> None:
    replies = ({"text": "a + b"}, {"text": "a + b", "alternatives": ["a - b", "a + b ", "max(a, b)", "", "abs(a)"]})
    async with lsp.session(*replies, options=NO_PAUSE) as client:
        typist = Typist(client, "total = ")
        assert await typist.sees() == ["a + b"]
        offered = await typist.sees(INVOKED)
        assert offered == ["a + b", "a - b", "max(a, b)"]
        assert [request["alternatives"] for request in (await client.engine())["requests"]] == [1, 4]
        # There is no more to be had here: asked again, the same list comes without the engine.
        assert await typist.sees(INVOKED) == offered
        # Whoever goes on along the second one is shown the second one.
        typist.type("m")
        assert await typist.sees() == ["ax(a, b)"]
        assert await typist.calls() == 2


async def test_of_two_who_ask_the_older_gets_nothing_even_where_something_was_offered() -> None:
    replies = ({"text": "a + b"}, {"text": "c", "hold": True}, {"text": "d"})
    async with lsp.session(*replies, options=NO_PAUSE) as client:
        typist = Typist(client, "total = ")
        await typist.sees()
        older = client.ghost(0, 8)
        client.send(older)
        await client.engine_asked(2)
        assert await typist.sees(INVOKED) == ["a + b", "d"]
        assert await client.answer(older) is None


async def test_another_text_comes_behind_the_dismissed_one() -> None:
    async with lsp.session({"text": "a + b"}, {"text": "c"}, options=NO_PAUSE) as client:
        typist = Typist(client, "total = ")
        assert await typist.sees() == ["a + b"]
        assert await typist.sees(INVOKED) == ["a + b", "c"]


async def test_nothing_comes_by_itself_right_after_an_undo() -> None:
    async with lsp.session({"text": "a + b"}, options=NO_PAUSE) as client:
        typist = Typist(client, "total = ")
        typist.type("123")
        typist.back(3)
        assert await typist.sees() == []
        typist.type("z")
        typist.back()
        assert await typist.sees() == []
        assert await typist.calls() == 0
        assert await typist.sees(INVOKED) == ["a + b"]
        # Typing goes on as if nothing had been.
        typist.type("y")
        assert await typist.sees() == ["a + b"]


async def test_an_undone_deletion_and_a_redone_change_are_undos_too() -> None:
    async with lsp.session({"text": "a + b"}, options=NO_PAUSE) as client:
        typist = Typist(client, "total = x")
        typist.back(4)
        typist.type(" = x")
        assert await typist.sees() == []
        typist.back(4)
        assert await typist.sees() == []
        assert await typist.calls() == 0


async def test_what_was_accepted_and_taken_back_is_not_shown_at_once() -> None:
    async with lsp.session({"text": ")"}, options=NO_PAUSE) as client:
        typist = Typist(client, "f(1")
        (item,) = await client.inline(0, typist.column, triggerKind=AUTOMATIC)
        typist.type(item["insertText"])
        command = item["command"]
        assert command["command"] == "lacuna.accepted"
        await client.request("workspace/executeCommand", {k: command[k] for k in ("command", "arguments")})
        typist.back()
        assert await typist.sees() == []


async def test_accepting_is_counted_once_and_holds_no_text() -> None:
    async with lsp.session({"text": "SECRET_MARK_42"}, options=NO_PAUSE) as client:
        typist = Typist(client, "total = ")
        (item,) = await client.inline(0, typist.column)
        assert "SECRET_MARK_42" not in str(item["command"])
        for arguments in (item["command"]["arguments"],) * 2 + (["unknown"], [5], []):
            command = {"command": "lacuna.accepted", "arguments": arguments}
            assert await client.request("workspace/executeCommand", command) is None
        assert (await status(client))["suggestions"] == {"shown": 1, "accepted": 1, "recalled": 0}
    assert client.log == b""


@pytest.mark.parametrize(
    ("text", "line", "character", "many"),
    [
        ("def mean(xs):\n    ", 1, 4, True),
        ("def mean(xs):\n    \n\nprint(mean([]))\n", 1, 4, True),
        ("y = f()", 0, 6, False),
        ("y = ", 0, 4, False),
        ("y = 1 + x", 0, 8, False),
    ],
)
async def test_lines_by_syntax(text: str, line: int, character: int, many: bool) -> None:
    async with lsp.session({"text": "a\nb"}) as client:
        client.open(text)
        await client.inline(line, character, triggerKind=AUTOMATIC)
        (request,) = (await client.engine())["requests"]
        assert request["max_lines"] == (0 if many else 1)


@pytest.mark.parametrize(
    ("text", "place", "comes"),
    [
        ("# todo ", (0, 7), False),
        ('s = "abc"', (0, 8), False),
        ('"""Words\n', (1, 0), False),
        ("x = 1  # c\ny = ", (1, 4), True),
        ("s = f'{}'", (0, 7), True),
    ],
)
async def test_comments_and_strings_are_left_alone_when_configured(
    text: str, place: tuple[int, int], comes: bool
) -> None:
    async with lsp.session({"text": "value"}, options={"inlineCompletion": {"inComments": False}}) as client:
        client.open(text)
        assert bool(await client.inline(*place)) is comes
        menu = await client.request("textDocument/completion", lsp.place(URI, *place))
        assert bool(menu["items"]) is comes


async def test_a_document_nobody_can_change_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("total = ", encoding="utf-8")
    file.chmod(0o444)
    async with lsp.session({"text": "a"}) as client:
        for uri in (file.as_uri(), "git:/w/a.py"):
            client.open("total = ", uri)
            assert await client.inline(0, 8, uri) is None
        assert (await client.engine())["requests"] == []


async def test_forty_requests_while_typing_get_forty_answers_and_two_questions_at_most() -> None:
    async with lsp.session({"text": "qq", "delay_s": 0.3}) as client:
        client.open("")
        ghosts = []
        for number in range(40):
            ghosts.append(client.ghost(0, number + 1, triggerKind=AUTOMATIC))
            client.send(lsp.change(number + 2, "x", lsp.area((0, number), (0, number))), ghosts[-1])
        results = [await client.answer(ghost) for ghost in ghosts]
        assert results[:-1] == [None] * 39
        assert [item["insertText"] for item in results[-1]["items"]] == ["qq"]
        assert len((await client.engine())["requests"]) <= 2
    assert client.log == b""


async def test_a_menu_entry_chosen_on_the_way_is_answered_from_memory() -> None:
    async with lsp.session({"text": "int('hi')"}, options=NO_PAUSE) as client:
        typist = Typist(client, "pr")
        assert await typist.sees() == ["int('hi')"]
        chosen = {"range": lsp.area((0, 0), (0, 2)), "text": "print"}
        (item,) = await client.inline(0, 2, triggerKind=AUTOMATIC, selectedCompletionInfo=chosen)
        assert (item["insertText"], item["range"]) == ("print('hi')", chosen["range"])
        other = {"range": lsp.area((0, 0), (0, 2)), "text": "private"}
        items = await client.inline(0, 2, triggerKind=AUTOMATIC, selectedCompletionInfo=other) or []
        assert all(each["insertText"].startswith("private") and each["range"] == other["range"] for each in items)
        assert await typist.calls() == 2


async def test_an_item_never_leaves_its_line() -> None:
    async with lsp.session({"text": "a\nb\nc"}) as client:
        client.open("def f():\n    \n")
        (item,) = await client.inline(1, 4, triggerKind=AUTOMATIC)
        assert "\n" in item["insertText"]
        assert item["range"] == lsp.area((1, 4), (1, 4))
        chosen = {"range": lsp.area((0, 0), (1, 4)), "text": "x"}
        assert await client.inline(1, 4, triggerKind=AUTOMATIC, selectedCompletionInfo=chosen) is None


async def test_a_bracket_that_the_editor_closes_by_itself_is_still_typing_through() -> None:
    async with lsp.session({"text": "(1, 2)"}, options=NO_PAUSE) as client:
        typist = Typist(client, "f\n")
        assert await typist.sees() == ["(1, 2)"]
        client.send(lsp.change(2, "()", lsp.area((0, 1), (0, 1))))
        (item,) = await client.inline(0, 2, triggerKind=AUTOMATIC)
        assert (item["insertText"], item["range"]) == ("1, 2)", lsp.area((0, 2), (0, 3)))
        assert await typist.calls() == 1
