"""Gaps lie where editors make them, in every language; holes are pieces of their file and the same each time."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tokenizer import BpeTokenizer, ByteTokenizer
from engine.training.hole_sampling import holes_of, teaches, token_hole
from engine.training.holes import GAP_MAKERS, HoleKind, SourceText, TextHole, lines_gap
from engine.training.shards import MOST_MIDDLE, MOST_PREFIX, MOST_SUFFIX
from engine.training.syntax_holes import Span, syntax_of
from tests.fakes.tiny_model import MERGES, SPECIALS, TOKENS

PYTHON = '''import math
from typing import List
import unrelated


def mean_of_squares(numbers: List[float], scale: float = 1.0) -> float:
    """Mean of the squares of the numbers, each scaled."""
    total = 0.0
    for number in numbers:
        scaled = number * scale
        total += math.pow(scaled, 2)
    if not numbers:
        return 0.0
    return total / len(numbers)


class Counter:
    def add(self, item: str, amount: int = 1) -> None:
        self.items[item] = self.items.get(item, 0) + amount
        self.total += amount
'''
GO = """package sums

func Sum(values []int, scale int) int {
\ttotal := 0
\tfor _, value := range values {
\t\ttotal += value * scale
\t}
\treturn total
}
"""
RUBY_LIKE = """def total(values, scale)
  values.each do |value|
    add(value, scale)
    count(value)
  end
end
"""
AWKWARD = [
    "",
    "\n",
    "   \n\t\n",
    "x",
    PYTHON.replace("\n", "\r\n"),
    PYTHON.replace("number", "zahlü😀"),
    PYTHON.rstrip("\n"),
    "x = '<|fim_middle|>' + '<|endoftext|>'\ny = call(x, '<|im_end|>')\n" * 5,
]


def drawn(text: str, language: str = "python", seed: int = 0, count: int = 40) -> list[TextHole]:
    return list(holes_of(text, language, count, random.Random(seed)))


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("language", ["python", "rust", "no such language"])
def test_a_hole_is_a_piece_of_its_file(text: str, language: str) -> None:
    for hole in drawn(text, language):
        assert hole.prefix.startswith(hole.head)
        assert hole.prefix[len(hole.head) :] + hole.middle + hole.suffix in text


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab(){}:,\n\r\t \"'#=é😀"), max_size=120), st.integers(0, 9))
def test_any_text_gives_pieces_of_itself_or_nothing(text: str, seed: int) -> None:
    for hole in drawn(text, "python", seed, 5) + drawn(text, "c", seed, 5):
        assert hole.prefix + hole.middle + hole.suffix in text


def test_the_same_seed_gives_the_same_holes() -> None:
    assert drawn(PYTHON, seed=3) == drawn(PYTHON, seed=3)
    assert drawn(PYTHON, seed=3) != drawn(PYTHON, seed=4)


def test_no_gap_of_a_file_is_asked_twice() -> None:
    whole = [(hole.prefix[len(hole.head) :], hole.middle) for hole in drawn(PYTHON, count=60)]
    assert len(whole) > 30
    assert len({(PYTHON.index(before + middle), len(before), middle) for before, middle in whole}) > 0.9 * len(whole)


def test_every_kind_comes_about_in_its_share() -> None:
    counted: Counter[HoleKind] = Counter()
    for seed in range(30):
        counted.update(hole.kind for hole in drawn(PYTHON + GO, seed=seed, count=10))
    assert set(counted) == set(HoleKind)
    assert counted[HoleKind.SPAN] > counted[HoleKind.ARGUMENTS] > counted[HoleKind.EMPTY]
    assert counted[HoleKind.EMPTY] < 0.12 * counted.total()


def test_an_empty_gap_is_empty_and_no_other_is() -> None:
    holes = [hole for seed in range(10) for hole in drawn(PYTHON, seed=seed)]
    assert all((hole.middle == "") == (hole.kind is HoleKind.EMPTY) for hole in holes)
    assert all(hole.middle.strip() for hole in holes if hole.kind is not HoleKind.EMPTY)


def test_many_holes_show_a_small_function_with_its_imports() -> None:
    holes = [hole for seed in range(20) for hole in drawn(PYTHON, seed=seed, count=8)]
    shown = [hole for hole in holes if hole.prefix.removeprefix(hole.head).startswith("def mean_of_squares")]
    assert len(shown) > len(holes) / 6
    heads = {hole.head for hole in shown}
    assert heads == {"", "import math\nfrom typing import List\n\n\n"}
    closed = [hole for hole in shown if hole.suffix.endswith("return total / len(numbers)\n")]
    assert len(closed) > len(shown) / 2


def test_whole_lines_are_mostly_cut_through_their_line_end() -> None:
    source = SourceText(PYTHON, "python", syntax_of(PYTHON, "python"))
    rng = random.Random(0)
    gaps = [gap for _ in range(300) if (gap := lines_gap(source, Span(0, len(PYTHON)), rng))]
    starts = Counter(PYTHON[gap.start - 1 : gap.start] in ("", "\n") for gap in gaps)
    through = Counter(PYTHON[gap.start : gap.stop].endswith("\n") for gap in gaps)
    assert starts[True] > starts[False] > 20
    assert through[True] > through[False] > 20


@pytest.mark.parametrize("kind", list(HoleKind))
def test_a_gap_keeps_to_its_region_as_far_as_lines_let_it(kind: HoleKind) -> None:
    source = SourceText(PYTHON, "python", syntax_of(PYTHON, "python"))
    region = Span(PYTHON.index("    total = "), PYTHON.index("\n\n\nclass"))
    rng = random.Random(1)
    gaps = [gap for _ in range(100) if (gap := GAP_MAKERS[kind](source, region, rng))]
    assert len(gaps) > 50
    assert all(region.start - 1 - 60 <= gap.start <= gap.stop <= region.stop + 1 for gap in gaps)
    assert all(source.line_at(gap.start) >= source.line_at(region.start) - 1 for gap in gaps)


def test_crlf_line_ends_stay_outside_a_line_rest() -> None:
    holes = [hole for seed in range(10) for hole in drawn(PYTHON.replace("\n", "\r\n"), seed=seed)]
    rests = [hole for hole in holes if hole.kind is HoleKind.LINE_REST]
    assert rests
    assert not any(hole.middle.endswith(("\r", "\n")) for hole in rests)
    assert all(hole.suffix.startswith("\r\n") for hole in rests if hole.suffix)


def test_syntax_finds_functions_behind_their_docstring() -> None:
    syntax = syntax_of(PYTHON, "python")
    starts = [PYTHON[function.start :].split("(", maxsplit=1)[0].strip() for function in syntax.functions]
    assert starts == ["def mean_of_squares", "def add"]
    assert PYTHON[syntax.functions[0].body :].startswith("total = 0.0")
    texts = {PYTHON[span.start : span.stop] for span in syntax.expressions}
    assert {"scaled, 2", "number * scale", "not numbers", "item, 0"} <= texts
    blocks = [PYTHON[span.start : span.stop] for span in syntax.blocks]
    assert "scaled = number * scale\n        total += math.pow(scaled, 2)" in blocks


def test_offsets_are_characters_whatever_the_bytes() -> None:
    text = "# é😀 ünï\n" + PYTHON
    plain, moved = syntax_of(PYTHON, "python"), syntax_of(text, "python")
    shift = len(text) - len(PYTHON)
    assert [(span.start + shift, span.stop + shift) for span in plain.expressions] == list(moved.expressions)
    assert [function.stop + shift for function in plain.functions] == [function.stop for function in moved.functions]


def test_layout_answers_where_no_grammar_does() -> None:
    syntax = syntax_of(GO, "no such language")
    assert "total += value * scale" in {GO[span.start : span.stop] for span in syntax.blocks}
    assert "values []int, scale int" in {GO[span.start : span.stop] for span in syntax.expressions}
    nested = {
        RUBY_LIKE[span.start : span.stop] for span in syntax_of("if x then\n  y()\nend\n" + RUBY_LIKE, "?").blocks
    }
    assert nested


@pytest.mark.parametrize(
    ("middle", "wanted"),
    [
        ("return total\n", True),
        ("    \n\t", False),
        ("", False),
        ("# Licensed under the MIT License\n", False),
        ("# Copyright 2020\n", False),
        ("x = '" + "a" * 80 + "'", False),
        ("    'one',\n    'two',\n    \"three\",\n", False),
        ("    0x12, 0x13, 0x14, 0x15,\n" * 4, False),
        ("'one'", False),
        (", 0).make_raw_range(", True),
        (")", True),
    ],
)
def test_what_teaches_nothing_is_left_out(middle: str, wanted: bool) -> None:
    assert teaches(middle) is wanted


def test_token_parts_are_tokenised_apart_and_cut_to_size() -> None:
    hole = TextHole("p" * 1000, "middle", "s" * 1000, HoleKind.SPAN, "python")
    tokens = token_hole(hole, ByteTokenizer())
    assert tokens is not None
    assert (len(tokens.prefix), len(tokens.suffix)) == (MOST_PREFIX, MOST_SUFFIX)
    assert bytes(tokens.middle) == b"middle"
    assert token_hole(TextHole("", "m" * (MOST_MIDDLE + 1), "", HoleKind.SPAN, "c"), ByteTokenizer()) is None


def test_the_text_of_special_tokens_stays_text() -> None:
    special = frozenset(index for index, token in enumerate(TOKENS) if token in SPECIALS)
    encoder = BpeTokenizer.from_vocabulary(TOKENS, special, MERGES)
    hole = TextHole("<|fim_prefix|>", "<|endoftext|>", "<|im_end|>\n", HoleKind.LINES, "python")
    tokens = token_hole(hole, encoder)
    assert tokens is not None
    assert not special & {*tokens.prefix, *tokens.middle, *tokens.suffix}
    parts = [encoder.decode_bytes(part).decode() for part in (tokens.prefix, tokens.middle, tokens.suffix)]
    assert parts == [hole.prefix, hole.middle, hole.suffix]
