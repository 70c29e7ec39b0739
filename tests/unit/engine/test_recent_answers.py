"""What was answered lately as a draft: when it is the rest of the text; it saves passes and changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import EngineCore
from engine.models.tiny import tiny_denoiser
from engine.protocol.messages import Done, Fill, FurtherHole
from engine.quality import Gates
from engine.recent_answers import ANSWERS, MOST_CHARACTERS, RecentAnswers
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.word_model import WordModel

SUFFIX = "\nend\n"


def fill(prefix: str, suffix: str = SUFFIX, draft: str = "") -> Fill:
    return Fill("1", "python", prefix, suffix, draft, max_tokens=24)


def memory(*answers: tuple[str, str]) -> RecentAnswers:
    recent = RecentAnswers()
    for prefix, text in answers:
        recent.remember(fill(prefix), text)
    return recent


@pytest.mark.parametrize(
    ("prefix", "rest"),
    [
        ("a = ", "foo(1)"),
        ("a = fo", "o(1)"),
        ("a =", " foo(1)"),
        ("a = foo(1)", ""),
        ("a = foo(1)\n", ""),
        ("a = fa", ""),
        ("b", ""),
    ],
)
def test_the_rest_is_what_follows_the_prefix(prefix: str, rest: str) -> None:
    assert memory(("a = ", "foo(1)")).draft_for(fill(prefix)) == rest


def test_the_newest_answer_that_fits_is_taken() -> None:
    recent = memory(("a = ", "one"), ("a = ", "other"), ("zzz", "x"))
    assert recent.draft_for(fill("a = o")) == "ther"
    assert recent.draft_for(fill("a = on")) == "e"


def test_before_another_text_nothing_is_expected() -> None:
    assert memory(("a = ", "foo(1)")).draft_for(fill("a = f", "\nother\n")) == ""


def test_long_texts_several_holes_and_old_answers_are_let_go() -> None:
    recent = memory(("x" * MOST_CHARACTERS, "y"))
    recent.remember(Fill("1", "python", "a", SUFFIX, further=(FurtherHole("b"),)), "c")
    assert recent.draft_for(fill("x" * MOST_CHARACTERS)) == ""
    assert recent.draft_for(fill("a")) == ""
    recent = memory(("first", "text"), *((f"{number} = ", "text") for number in range(ANSWERS)))
    assert recent.draft_for(fill("first")) == ""


@given(prefix=st.text(max_size=8), text=st.text(max_size=8), asked=st.text(max_size=16))
def test_a_draft_completes_the_text_that_was_answered(prefix: str, text: str, asked: str) -> None:
    rest = memory((prefix, text)).draft_for(fill(asked))
    assert not rest or asked + rest == prefix + text


def test_who_types_along_gets_the_rest_in_fewer_passes() -> None:
    words = [b"\n", b"a", b"b", b"c", b"d", b"e", b"end"]
    model = WordModel(words, {b"": [b"a"], b"a": [b"b"], b"b": [b"c"], b"c": [b"d"], b"d": [b"e"]})
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    first, _, _ = drive(engine, fill("\n"))
    assert first.text == "abcde"
    along, _, _ = drive(engine, fill("\na"))
    assert along.text == "bcde"
    fresh, _, _ = drive(EngineCore(model, clock=Clock(), threads=1, gates=Gates.open()), fill("\na"))
    assert fresh.text == along.text
    assert along.stats.passes < fresh.stats.passes


def test_behind_a_word_that_was_finished_the_draft_goes_on_where_the_word_ends() -> None:
    words = [b"\n", b"ret", b"return", b"u", b"r", b"n", b" ", b"x", b"y", b"z", b"end"]
    likes = {b"": [b"return"], b"return": [b" "], b" ": [b"x"], b"x": [b"y"], b"y": [b"z"]}
    engine = EngineCore(WordModel(words, likes), clock=Clock(), threads=1, gates=Gates.open())
    assert drive(engine, fill("\n"))[0].text == "return xyz"
    along, _, _ = drive(engine, fill("\nret"))
    assert (along.text, along.stats.passes) == ("urn xyz", 1)


@pytest.mark.parametrize("seed", range(4))
def test_the_text_is_the_one_without_any_memory(seed: int) -> None:
    engine = EngineCore(tiny_denoiser(seed=seed), clock=Clock(), threads=1, gates=Gates.open())
    whole = drive(engine, fill("def f(x):\n"))[0].text
    for end in range(min(6, len(whole))):
        request = fill("def f(x):\n" + whole[:end])
        expected: Done = drive(
            EngineCore(tiny_denoiser(seed=seed), clock=Clock(), threads=1, gates=Gates.open()), request
        )[0]
        assert drive(engine, request)[0].text == expected.text


def test_a_draft_of_the_request_itself_is_kept() -> None:
    words = [b"\n", b"a", b"b", b"c", b"end"]
    model = WordModel(words, {b"": [b"a"], b"a": [b"b"], b"b": [b"c"]})
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    drive(engine, fill("\n"))
    done, _, _ = drive(engine, fill("\n", draft="c"))
    assert done.text == "abc"
    remembered, _, _ = drive(engine, fill("\n"))
    assert remembered.stats.passes < done.stats.passes
