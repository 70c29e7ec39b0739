"""Holes of a file filled in one job: what is asked, what goes in, and what stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.cli.filling import MARK, Asking, Attempt, fill_each, fill_together
from engine.cli.main import cli
from engine.protocol.messages import MOST_HOLES, Constraints, Done, Fill, Filled, Stop
from lsp_server.document import Document
from lsp_server.holes import find_holes
from tests.fakes.fake_engine import stats

TEXT = f"def area(w, h):\n    return {MARK}\n\n\ndef twice(x):\n    {MARK}\n\n\nEND = 1\n"


@dataclass
class Says:
    """Fills holes with these texts in turn; one of None is cut off."""

    texts: Sequence[str | None]
    asked: list[Fill] = field(default_factory=list)

    async def submit(self, request: Fill) -> Done:
        done = sum(1 + len(earlier.further) for earlier in self.asked)
        self.asked.append(request)
        said = [self.texts[(done + number) % len(self.texts)] for number in range(1 + len(request.further))]
        first, *further = [Filled(text or "", _stop(text)) for text in said]
        return Done(request.id, first.text, stats(first.stop), further=tuple(further))


def spans(text: str) -> list[tuple[int, int]]:
    return [(hole.start, hole.end) for hole in find_holes(text, (MARK,))]


def _stop(text: str | None) -> Stop:
    return "budget" if text is None else "end"


def filled(engine: Says, text: str = TEXT, language: str = "python", asking: Asking | None = None) -> list[Attempt]:
    document = Document.open("file:///a", 0, language, text)
    return asyncio.run(fill_together(engine, document, spans(text), asking or Asking(64)))


def test_all_marks_are_one_request_with_the_text_between_them() -> None:
    engine = Says(["w * h", "return 2 * x"])
    attempts = filled(engine)
    assert attempts[-1].text == TEXT.replace(MARK, "w * h", 1).replace(MARK, "return 2 * x")
    (request,) = engine.asked
    assert (request.prefix, request.suffix) == ("def area(w, h):\n    return ", "\n\n\nEND = 1\n")
    assert [hole.island for hole in request.further] == ["\n\n\ndef twice(x):\n    "]
    assert (request.max_tokens, request.constraints) == (64, None)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_are_the_file_s_and_the_engine_sees_line_feeds(newline: str) -> None:
    engine = Says(["w", "y = x\n    return y"])
    attempts = filled(engine, TEXT.replace("\n", newline))
    assert attempts[-1].text is not None
    assert attempts[-1].text.count("\n") == attempts[-1].text.count(newline) == TEXT.count("\n") + 1
    assert "\r" not in engine.asked[0].prefix + engine.asked[0].suffix + engine.asked[0].further[0].island


def test_a_mark_that_nothing_came_for_stays_and_the_others_are_filled() -> None:
    first, second = filled(Says([None, "return 2 * x"]))
    assert (first.text, "--max-tokens" in first.note) == (None, True)
    assert second.text == TEXT.rpartition(MARK)[0] + "return 2 * x" + TEXT.rpartition(MARK)[2]


def test_more_marks_than_a_request_holds_are_several_requests() -> None:
    text = "".join(f"a{number} = {MARK}\n" for number in range(MOST_HOLES + 2))
    engine = Says(["1"])
    assert filled(engine, text)[-1].text == text.replace(MARK, "1")
    assert [len(request.further) for request in engine.asked] == [MOST_HOLES - 1, 1]
    assert MARK not in engine.asked[0].suffix
    assert "a0 = 1\n" in engine.asked[1].prefix


def test_marks_with_nothing_between_them_are_one_hole() -> None:
    engine = Says(["w", "h"])
    attempts = filled(engine, f"a = {MARK}{MARK}{MARK}\nb = {MARK}\n")
    assert [attempt.inserted for attempt in attempts] == ["w", "h"]
    assert attempts[-1].text == "a = w\nb = h\n"
    assert [hole.island for hole in engine.asked[0].further] == ["\nb = "]


def test_what_must_obey_goes_in_as_it_was_made_unless_the_tidied_text_obeys_too() -> None:
    text = f"x = 1 + {MARK}\n"
    tidied = filled(Says([" 2"]), text)[-1].inserted
    assert tidied == "2"
    assert filled(Says([" 2"]), text, asking=Asking(9, Constraints(max_characters=2)))[-1].inserted == "2"
    assert filled(Says([" 2"]), text, asking=Asking(9, Constraints(allowed=" 2")))[-1].inserted == "2"
    document = json.dumps({"a": MARK}).replace(f'"{MARK}"', MARK)
    exact = Asking(9, Constraints(json_schema="{}"))
    assert filled(Says([" 2 "]), document, "json", exact)[-1].text == '{"a":  2 }'


BLANK = [("", ["--max-chars", "1"]), ("", ["--allow", "abc"]), ("\n", ["--max-lines", "2", "--allow", "\n"]), (" ", [])]


@pytest.mark.parametrize(("said", "options"), [*BLANK, ("", ["--must-parse"])])
def test_blanks_obey_nothing(said: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connected(_model: str) -> AsyncIterator[Says]:
        yield Says([said])

    monkeypatch.setattr("engine.cli.files.connected_engine", connected)
    path = tmp_path / "one.py"
    path.write_text(f"x = ({MARK})\n")
    done = CliRunner().invoke(cli, ["fill", str(path), "--write", *options])
    assert (done.exit_code, path.read_text()) == (1, f"x = ({MARK})\n")
    assert "nothing to add" in done.output


@pytest.mark.parametrize(("options", "said"), [(["--allow", ""], "--allow"), (["--json-schema", "-"], "--json-schema")])
def test_an_option_that_says_nothing_is_refused(options: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(f"[{MARK}]\n")
    done = CliRunner().invoke(cli, ["fill", str(path), *options], input=" \n")
    assert done.exit_code == 2
    assert said in done.output


def test_what_is_judged_as_a_whole_is_sent_as_a_whole() -> None:
    text = "# a long way\n" * 2000 + TEXT
    wanted = Constraints(must_parse=True)
    whole, part = Says(["w", "pass"]), Says(["w", "pass"])
    filled(whole, text, asking=Asking(9, wanted))
    filled(part, text, asking=Asking(9, replace(wanted, must_parse=False, max_lines=3)))
    assert whole.asked[0].prefix == text.partition(MARK)[0]
    assert len(part.asked[0].prefix) < len(whole.asked[0].prefix)


def test_each_alone_is_asked_with_the_earlier_ones_in_place() -> None:
    engine = Says(["w * h", "return 2 * x"])

    async def attempts() -> list[Attempt]:
        document = Document.open("file:///a", 0, "python", TEXT)
        return [attempt async for attempt in fill_each(engine, document, spans(TEXT), Asking(64))]

    done = asyncio.run(attempts())
    assert done[-1].text == TEXT.replace(MARK, "w * h", 1).replace(MARK, "return 2 * x")
    first, second = engine.asked
    assert "def twice(x):\n    ...\n" in first.suffix
    assert "return w * h\n" in second.prefix
