"""Constraints that act on logits: whatever the model says, the text obeys or the job fails by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.canvas import FREE, LOCKED, SETTLED, Canvas
from engine.diffusion.constraints import AllowedCharacters, Combined, Constraint, ExactText, Extent, Vocabulary
from engine.diffusion.constraints.canvas_text import CanvasText
from engine.models.tiny import tiny_denoiser
from engine.protocol.errors import EngineError
from tests.fakes.pieces import END, MASK, PIECES, SIZE, Dice, PieceTokenizer, facts, outcome, vocabulary

WORDS = vocabulary()
A, OPEN, NEWLINE, LONG = 0, 3, 5, len(PIECES) - 1


def canvas(*parts: tuple[str | int, int]) -> Canvas:
    """Known text, or so many places of noise, each with its state."""
    encode = PieceTokenizer().encode
    return Canvas.of([(encode(part) if isinstance(part, str) else [MASK] * part, state) for part, state in parts])


def gap(places: int) -> Canvas:
    return canvas(("a(", LOCKED), (places, FREE), (")\n", LOCKED))


def hole_texts(filled: Canvas, words: Vocabulary = WORDS) -> list[bytes]:
    text = CanvasText.of(filled, words)
    return [text.data[text.extents[hole.start][0] : text.extents[hole.end - 1][1]] for hole in filled.holes()]


def result(start: Canvas, constraint: Constraint, dice: Dice, together: int) -> Canvas | None:
    """The finished canvas, None when the job failed by name; what was given has not changed either way."""
    filled = outcome(start, constraint, dice, together)
    if isinstance(filled, EngineError):
        assert filled.kind == "unsatisfied"
        assert filled.remedy
        return None
    assert torch.equal(filled.ids[start.locked], start.ids[start.locked])
    return filled


seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_only_allowed_characters_come_out(seed: int, places: int, together: int, ends: bool) -> None:
    words = vocabulary(ends=ends)
    rule = Combined([AllowedCharacters(words, words.writing_only("ab\né"))])
    filled = result(gap(places), rule, Dice(seed, ends), together)
    assert filled is not None
    (text,) = hole_texts(filled, words)
    assert set(text.decode()) <= set("ab\né")


@given(seeds, st.integers(1, 8), st.integers(1, 8), st.integers(0, 4), st.integers(0, 12), st.booleans())
def test_no_hole_outgrows_its_limits(
    seed: int, places: int, together: int, lines: int, characters: int, ends: bool
) -> None:
    words = vocabulary(ends=ends)
    start = canvas(("a(", LOCKED), (places, FREE), (",", LOCKED), (2, FREE), (")\n", LOCKED))
    filled = result(start, Combined([Extent(words, lines, characters)]), Dice(seed, ends), together)
    # Without an end id a hole of n places holds at least about n characters.
    if filled is None:
        assert not ends
        assert 0 < characters < max(places, 2)
        return
    for text in hole_texts(filled, words):
        assert not lines or text.count(b"\n") < lines
        assert not characters or len(text.decode(errors="replace")) <= characters + text.count(b"\xa9")


@given(seeds, st.integers(1, 8), st.dictionaries(st.integers(-8, 7), st.sampled_from([A, OPEN, NEWLINE]), max_size=4))
def test_exact_ids_stand_where_they_are_wanted(seed: int, together: int, ids: dict[int, int]) -> None:
    filled = outcome(canvas((8, FREE)), Combined([ExactText(ids)]), Dice(seed), together)
    if isinstance(filled, EngineError):
        assert filled.kind == "bad_request"
        assert any(ids.get(place, ids.get(place - 8)) != ids.get(place - 8, ids.get(place)) for place in range(8))
        return
    assert all(int(filled.ids[place]) == token for place, token in ids.items())


@given(seeds, st.integers(1, 8), st.integers(1, 8))
def test_several_rules_hold_together(seed: int, places: int, together: int) -> None:
    rule = Combined([AllowedCharacters(WORDS, WORDS.writing_only("ab\n")), Extent(WORDS, 2, 9), ExactText({2: A})])
    filled = result(gap(places), rule, Dice(seed), together)
    assert filled is not None
    (text,) = hole_texts(filled)
    assert set(text.decode()) <= set("ab\n")
    assert len(text) <= 9
    assert text.count(b"\n") < 2
    assert int(filled.ids[2]) == A


def test_rules_that_contradict_each_other_fail_by_name() -> None:
    rule = Combined([AllowedCharacters(WORDS, WORDS.writing_only("b")), ExactText({2: A})])
    with pytest.raises(EngineError, match="no token obeys every constraint at place 2") as failure:
        rule.constrain(gap(2), Dice(1).logits(6))
    assert failure.value.kind == "unsatisfied"


@pytest.mark.parametrize("ids", [{9: A}, {-9: A}, {0: OPEN}, {2: SIZE}, {2: A, -4: OPEN}])
def test_exact_ids_that_cannot_be_are_a_bad_request(ids: dict[int, int]) -> None:
    with pytest.raises(EngineError) as failure:
        ExactText(ids).constrain(gap(2), Dice(1).logits(6))
    assert failure.value.kind == "bad_request"


def test_given_logits_and_rows_of_locked_places_stay_as_they_are() -> None:
    start, logits = gap(2), Dice(3).logits(6)
    before = logits.clone()
    for rule in (ExactText({2: A}), AllowedCharacters(WORDS, WORDS.writing_only("b")), Extent(WORDS, 1, 1)):
        constrained = rule.constrain(start, logits)
        assert torch.equal(logits, before)
        assert torch.equal(constrained[start.locked], before[start.locked])
        assert not torch.equal(constrained, before)


def test_logits_that_are_no_numbers_do_not_undo_a_constraint() -> None:
    logits = torch.full((6, SIZE), torch.nan)
    constrained = Combined([ExactText({2: A})]).constrain(gap(2), logits)
    assert int(constrained[2].argmax()) == A


def test_a_part_of_a_character_is_not_an_allowed_character() -> None:
    allowed = WORDS.writing_only(str.isalpha)
    kept = {token for token in range(SIZE) if allowed[token]}
    assert {PIECES[token].decode() for token in kept - {END}} == {"a", "b", "ab", "é", "true", "abcdefgh"}
    assert END in kept
    assert MASK not in kept


def test_a_warm_start_that_breaks_a_rule_is_opened() -> None:
    start = canvas(("a(", LOCKED), ("a1b", SETTLED), (")", LOCKED))
    opened = AllowedCharacters(WORDS, WORDS.writing_only("ab")).review(start)
    assert opened is not None
    assert opened.tolist() == [False, False, False, True, False, False]


def test_what_stands_behind_an_end_is_no_text() -> None:
    start = Canvas.of([([A], LOCKED), ([A, END, NEWLINE, LONG], SETTLED), ([OPEN], LOCKED)])
    assert Combined([Extent(WORDS, 1, 1), AllowedCharacters(WORDS, WORDS.writing_only("a"))]).review(start) is None
    assert CanvasText.of(start, WORDS).data == b"aa("


def test_limits_passed_together_are_shared_out_afterwards() -> None:
    words = vocabulary(ends=False)
    start = Canvas.of([([LONG, LONG, LONG], SETTLED)])
    rule = Extent(words, max_characters=10)
    opened = rule.review(start)
    assert opened is not None
    assert opened.tolist() == [False, True, True]
    again = replace(start, state=start.state.masked_fill(opened, FREE))
    largest = [int(words.characters[row > -torch.inf].max()) for row in rule.constrain(again, torch.zeros(3, SIZE))]
    assert largest == [8, 1, 1]


def test_a_real_vocabulary_is_read_whole() -> None:
    model = tiny_denoiser()
    known = replace(facts(), vocab_size=model.facts.vocab_size, end_ids=model.facts.special.end)
    words = Vocabulary.of(model.tokenizer, known)
    assert words.pieces[ord("x")] == b"x"
    assert int(words.characters[:256].sum()) == 192
    assert {token for token in range(known.vocab_size) if words.silent[token]} == set(known.end_ids)
    with pytest.raises(ValueError, match="negative"):
        Extent(words, -1)
