"""The known beginning of a gap: where it begins, that the prompt rests while it grows, and the healing of its end."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.core import EngineCore
from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.denoise import Pass
from engine.lead import LIKELIEST, healed, settle_lead, settle_lead_and_go_on, worth_expecting
from engine.models.tiny import tiny_denoiser
from engine.prompts import LEAD_CHARS, expected_ids, fill_prompt, lead_border
from engine.protocol.messages import Fill
from engine.quality import Gates
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.word_model import WordModel, WordTokenizer

SMILE = "🙂".encode()
WORDS = [b"\n", b" ", b"x", b"(", b"(x", b"ret", b"return", b"u", b"y", b":", b":\n", SMILE[:1], SMILE[1:], SMILE]
RETURN = {b"\n": [b"x", b"return", b"ret", b"y"], b"return": [b" "], b"ret": [b"u"], b" ": [b"y"]}


def fill(prefix: str, suffix: str = "\n", **options: int) -> Fill:
    return Fill("1", "python", prefix, suffix, **{"max_tokens": 8} | options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prefix", "lead"),
    [
        *(("", ""), ("a\n", ""), ("a\n  b", "b"), ("a\n\tb ", "b "), ("a\nb\n", ""), ("a\n    ", ""), ("  ", "")),
        *(("x" * (LEAD_CHARS + 3), "xxx"), ("x" * LEAD_CHARS, ""), ("  " + "x" * (LEAD_CHARS + 3), "xxx")),
    ],
)
def test_the_lead_is_the_cursor_s_line_or_the_end_of_a_long_one(prefix: str, lead: str) -> None:
    assert prefix[lead_border(prefix) :] == lead


@given(st.text("ab \n", max_size=60), st.text(" ", max_size=4), st.text("ab ", max_size=60))
def test_the_prompt_rests_while_a_line_is_typed(before: str, blank: str, line: str) -> None:
    model = WordModel([b"a", b"b", b" ", b"\n", b"ab", b"  "], {})
    special = model.facts.special
    start = before + "\n" + blank
    whole = start + line.lstrip(" ")
    prompts = [fill_prompt(fill(whole[:end]), model.tokenizer, special) for end in range(len(start), len(whole))]
    assert len({prompt.ids for prompt in prompts}) <= 1


def test_a_key_in_a_line_encodes_nothing_and_steps_the_lead() -> None:
    model = WordModel(WORDS, RETURN)
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    drive(engine, fill("x\n"))
    model.encoded.clear()
    for typed in ("x", "xx", "xxx"):
        done, _, _ = drive(engine, fill("x\n" + typed))
        # The prompt, and `<middle>` with all but the last token of the line.
        assert done.stats.prompt_tokens == done.stats.cached_tokens + len(typed)
    assert model.encoded == []


def test_a_word_begun_is_finished_as_one_token() -> None:
    model = WordModel(WORDS, RETURN | {b"": [b"x", b"return", b"ret"]})
    done, _, _ = drive(EngineCore(model, clock=Clock(), threads=1, gates=Gates.open()), fill("x\nret"))
    assert done.text == "urn y"
    assert done.stats.stop == "end"


def test_what_was_typed_stays_where_nothing_likelier_begins_with_it() -> None:
    model = WordModel(WORDS, RETURN | {b"": [b"x", b"ret", b"return"]})
    done, _, _ = drive(EngineCore(model, clock=Clock(), threads=1, gates=Gates.open()), fill("x\nret"))
    assert done.text == "u"


def test_where_the_text_is_made_by_rules_the_end_stays_as_it_was_typed() -> None:
    model = WordModel(WORDS, RETURN | {b"": [b"return"]})
    prompt = fill_prompt(fill("x\nret"), model.tokenizer, model.facts.special)
    context = model.context_for(prompt.ids)
    model.encode(context, prompt.ids)
    assert settle_lead(model, context, prompt, heal=False) == prompt
    assert context.length == prompt.rows


def test_the_line_limit_counts_what_the_healing_brought() -> None:
    model = WordModel(WORDS, {b"": [b":\n"], b":\n": [b"x"], b"x": [b"\n"]})
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    assert drive(engine, fill("x\n:", max_lines=1))[0].text == "\nx"
    model = WordModel(WORDS, {b"": [b"return"], b"return": [b":\n"], b":\n": [b"x"]})
    done, _, _ = drive(EngineCore(model, clock=Clock(), threads=1, gates=Gates.open()), fill("x\nret", max_lines=1))
    assert (done.text, done.stats.stop) == ("urn:", "lines")


def test_a_token_that_ends_a_line_by_itself_needs_no_pass() -> None:
    words = [*WORDS, b"y:\n"]
    model = WordModel(words, {b"": [b"y:\n"]})
    done, _, _ = drive(EngineCore(model, clock=Clock(), threads=1, gates=Gates.open()), fill("x\ny", max_lines=1))
    assert (done.text, done.stats.stop, done.stats.passes) == (":", "lines", 0)


def test_drafts_and_alternatives_begin_as_the_text_does() -> None:
    likes = RETURN | {b"": [b"return"], b"return": [b" ", b"(x"], b" ": [b"y", b"x"], b"(x": [b":"]}
    engine = EngineCore(WordModel(WORDS, likes), clock=Clock(), threads=1, gates=Gates.open())
    request = Fill("1", "python", "x\nret", "\n", max_tokens=8, wants_drafts=True, alternatives=3)
    done, drafts, _ = drive(engine, request)
    assert done.alternatives
    assert drafts
    assert all(text.startswith("urn") for text in (done.text, *done.alternatives, *(draft.text for draft in drafts)))
    assert all(draft.settled >= len("urn") for draft in drafts)


def logits_of(tokenizer: WordTokenizer, *likeliest: bytes) -> torch.Tensor:
    logits = torch.zeros(len(tokenizer.words))
    for rank, word in enumerate(likeliest):
        logits[tokenizer.words.index(word)] = 9.0 - rank
    return logits


def test_a_token_that_ends_inside_a_character_heals_nothing() -> None:
    tokenizer = WordTokenizer([*WORDS, b"x" + SMILE[:2], b"x" + SMILE])
    known = tokenizer.words.index(b"x")
    half = logits_of(tokenizer, b"x" + SMILE[:2], b"x")
    assert healed(half, tokenizer, known, frozenset()) == (known, "")
    whole = logits_of(tokenizer, b"x" + SMILE[:2], b"x" + SMILE, b"x")
    assert healed(whole, tokenizer, known, frozenset()) == (tokenizer.words.index(b"x" + SMILE), "🙂")


def test_the_known_end_may_be_part_of_a_character() -> None:
    tokenizer = WordTokenizer(WORDS)
    known = tokenizer.words.index(SMILE[1:])
    assert healed(logits_of(tokenizer, SMILE, b"x"), tokenizer, known, frozenset()) == (known, "")


def test_a_special_id_heals_nothing() -> None:
    tokenizer = WordTokenizer(WORDS)
    known, special = tokenizer.words.index(b"ret"), tokenizer.words.index(b"return")
    assert healed(logits_of(tokenizer, b"return"), tokenizer, known, frozenset({special})) == (known, "")


def test_what_is_far_from_likely_is_not_looked_for() -> None:
    tokenizer = WordTokenizer([b"a", b"ab", *(b"%d" % number for number in range(2 * LIKELIEST))])
    logits = torch.arange(2 * LIKELIEST + 2).float()
    assert healed(logits, tokenizer, 0, frozenset()) == (0, "")


@pytest.mark.parametrize("lead", ["r", "    return ", "    " * 12 + "y"])
def test_the_text_is_the_same_whatever_is_resident_and_however_long_the_lead(lead: str) -> None:
    request = Fill("1", "python", f"def f(x):\n{lead}", "\n\nprint(f(2))\n", max_tokens=12)
    fresh = EngineCore(tiny_denoiser(seed=4), clock=Clock(), threads=1, gates=Gates.open())
    expected = drive(fresh, request)[0].text
    warm = EngineCore(tiny_denoiser(seed=4), clock=Clock(), threads=1, gates=Gates.open())
    for end in range(len(request.prefix) - len(lead), len(request.prefix)):
        drive(warm, Fill("0", "python", request.prefix[:end], request.suffix, max_tokens=3))
    assert drive(warm, request)[0].text == expected


LETTERS = [*WORDS, b"r", b"n"]
LINE = {b"": [b"return"], b"return": [b" "], b" ": [b"y"], b"y": [b":"], b":": [b"(x"]}


@pytest.mark.parametrize("options", [{}, {"max_tokens": 3}, {"max_tokens": 1}, {"max_lines": 1}])
def test_a_key_along_with_the_last_answer_is_one_pass(options: dict[str, Any]) -> None:
    model = WordModel(LETTERS, LINE)
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    assert drive(engine, fill("x\n", **options))[0].text.startswith("return")
    model.stepped.clear()
    done, _, _ = drive(engine, fill("x\nret", **options))
    fresh, _, _ = drive(
        EngineCore(WordModel(LETTERS, LINE), clock=Clock(), threads=1, gates=Gates.open()), fill("x\nret", **options)
    )
    assert (done.text, done.stats.stop, done.stats.tokens) == (fresh.text, fresh.stats.stop, fresh.stats.tokens)
    assert done.stats.passes <= 1 + ("max_tokens" in options)
    if not options:
        assert len(model.stepped) == 1
        assert done.stats.drafts == (("warm_start", 6, 6),)


def test_an_answer_that_the_model_leaves_costs_one_pass_and_changes_nothing() -> None:
    likes = dict(LINE)
    model = WordModel(LETTERS, likes)
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    assert drive(engine, fill("x\n"))[0].text == "return y:(x"
    for word, others in ((b"", [b"ret"]), (b" ", [b"x"]), (b":", [b"\n"])):
        changed = LINE | {word: others, b"ret": [b"u"], b"x": [b"u"]}
        likes.clear()
        likes.update(changed)
        fresh = EngineCore(WordModel(LETTERS, changed), clock=Clock(), threads=1, gates=Gates.open())
        assert drive(engine, fill("x\nret"))[0].text == drive(fresh, fill("x\nret"))[0].text
        likes.clear()
        likes.update(LINE)
        drive(engine, fill("x\n"))


def test_who_watches_sees_what_the_lead_s_pass_settled() -> None:
    model = WordModel(LETTERS, LINE)
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    drive(engine, fill("x\n"))
    seen: list[Pass] = []
    engine.watch(seen.append)
    drive(engine, fill("x\nret"))
    (only,) = seen
    kept = [candidate.token for candidate in only.draft[: only.accepted]]
    assert only.settled == ()
    assert model.tokenizer.decode_bytes(kept[:-1]) == b" y:(x"
    assert kept[-1] in model.facts.special.end
    assert only.logits.shape[0] == 1 + len(only.draft)


def test_a_long_lead_and_what_is_expected_behind_it_leave_the_right_rows() -> None:
    model = WordModel(LETTERS, LINE | {b"x": [b"return"]})
    prompt = fill_prompt(fill("x\n" + "x" * 20 + "ret"), model.tokenizer, model.facts.special)
    expected = model.tokenizer.encode("return y")
    for ids, kept in ((expected, 3), (expected[:1], 1), ([*expected[:2], 2, 2], 2), ([2, 2], 0)):
        context = model.context_for(prompt.ids)
        model.encode(context, prompt.ids[context.length :])
        begun = settle_lead_and_go_on(model, context, prompt, ids)
        assert (begun.offered, begun.kept, begun.is_refused) == (len(ids), kept, kept == 0)
        assert context.length == prompt.rows + kept
        assert len(begun.ids) == kept


def test_a_text_in_the_gap_that_begins_otherwise_is_still_a_draft_further_on() -> None:
    words = [*LETTERS, b"a", b"b", b"c", b"d", b"e"]
    chain = {left: [right] for left, right in itertools.pairwise([b"a", b"b", b"c", b"d", b"e"])}
    engine = EngineCore(
        WordModel(words, chain | {b"": [b"return"], b"return": [b"a"]}), clock=Clock(), threads=1, gates=Gates.open()
    )
    done, _, _ = drive(engine, replace(fill("x\nret"), draft="abcde"))
    assert (done.text, done.stats.passes) == ("urnabcde", 1)


def test_expected_ids_begin_with_the_token_that_is_healed() -> None:
    tokenizer, special = WordTokenizer(LETTERS), WordModel(LETTERS, {}).facts.special

    def expected(prefix: str, draft: str) -> bytes:
        prompt = fill_prompt(fill(prefix), tokenizer, special)
        return tokenizer.decode_bytes(expected_ids(prompt, replace(fill(prefix), draft=draft), tokenizer, special))

    assert expected("x\nret", "urn x") == b"return x"
    assert expected("x\nret", "u") == b"retu"
    assert expected("x\nret", "") == b""
    assert expected("x\n", "return") == b"", "no lead"


@pytest.mark.parametrize(
    ("price", "lead", "room", "count"),
    [(0.05, 2, 8, 8), (0.05, 2, 3, 3), (0.05, 2, 0, 0), (3.0, 1, 8, 0), (3.0, 4, 8, 8)],
)
def test_as_much_is_expected_as_pays_beside_the_lead_s_rows(price: float, lead: int, room: int, count: int) -> None:
    assert len(worth_expecting(range(8), lead, room, CostCurve.linear(price))) == count
