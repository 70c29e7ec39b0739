"""Constraints on the whole text: a real parser, real JSON Schemas, and the places a fault is blamed on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tree_sitter import Language, Node, Parser

from engine.canvas import FREE, LOCKED, SETTLED, Canvas
from engine.diffusion.constraints import Combined, Constraint, Extent, Vocabulary, json_schema, must_parse
from engine.diffusion.constraints.canvas_text import CanvasText, byte_spans
from engine.diffusion.constraints.json_schema import locate, schema_faults
from engine.diffusion.constraints.reviewed import Faults
from engine.protocol.errors import EngineError
from tests.fakes.pieces import MASK, PIECES, SIZE, Dice, PieceTokenizer, denoised, outcome, vocabulary

WORDS = vocabulary()
seeds = st.integers(0, 2**32)


def python_faults() -> Faults:
    parser = Parser(Language(tree_sitter_python.language()))

    def faults(text: str) -> Sequence[tuple[int, int]]:
        data = text.encode()

        def wrong(node: Node) -> list[tuple[int, int]]:
            if node.is_error or node.is_missing:
                return [(len(data[: node.start_byte].decode()), len(data[: node.end_byte].decode()))]
            return [span for child in node.children if node.has_error for span in wrong(child)]

        return wrong(parser.parse(data).root_node)

    return faults


def gap(before: str, places: int, after: str) -> Canvas:
    encode = PieceTokenizer().encode
    return Canvas.of([(encode(before), LOCKED), ([MASK] * places, FREE), (encode(after), LOCKED)])


def filled_or_failed(start: Canvas, rule: Constraint, seed: int, together: int) -> str | None:
    filled = outcome(start, rule, Dice(seed), together)
    if isinstance(filled, EngineError):
        assert filled.kind == "unsatisfied"
        assert filled.remedy
        return None
    assert torch.equal(filled.ids[start.locked], start.ids[start.locked])
    return CanvasText.of(filled, WORDS).data.decode()


@settings(max_examples=100)
@given(seeds, st.integers(1, 5), st.integers(1, 5))
def test_what_comes_out_parses(seed: int, places: int, together: int) -> None:
    faults = python_faults()
    rule = Combined([Extent(WORDS, 3), must_parse(WORDS, faults, tries=12)])
    text = filled_or_failed(gap("ab(a", places, ")\n"), rule, seed, together)
    assert text is None or not faults(text)


def test_an_error_is_mended_where_it_stands() -> None:
    """The likeliest text is wrong in one place; a correction takes the next likely token there and nothing else."""
    wanted = [PIECES.index(piece) for piece in (b"a", b"a", b"a", b"23")]
    logits = torch.full((6, SIZE), -9.0)
    for place, token in enumerate(wanted, start=1):
        logits[place, token] = 5.0
    logits[2, PIECES.index(b"(")] = 6.0
    filled = denoised(gap("(", 4, ")"), must_parse(WORDS, python_faults()), lambda _: logits, 4)
    assert CanvasText.of(filled, WORDS).data == b"(aaa23)"


def test_known_text_around_the_canvas_is_parsed_with_it() -> None:
    encode = PieceTokenizer().encode
    full = Canvas.of([(encode("a)"), SETTLED)])
    assert must_parse(WORDS, python_faults(), "x = é(").review(full) is None
    opened = must_parse(WORDS, python_faults(), "x = é", "\n").review(full)
    assert opened is not None
    assert bool(opened[1])


def test_tries_run_out() -> None:
    full = Canvas.of([(PieceTokenizer().encode("(("), SETTLED)])
    rule = must_parse(WORDS, lambda text: [(0, len(text))], tries=2)
    assert rule.review(full) is not None
    assert rule.review(full) is not None
    with pytest.raises(EngineError, match="no text was found that parses in 2 corrections") as failure:
        rule.review(full)
    assert failure.value.kind == "unsatisfied"


def test_a_broken_text_without_a_hole_is_nobody_s_to_mend() -> None:
    full = Canvas.of([(PieceTokenizer().encode("(("), LOCKED)])
    with pytest.raises(EngineError, match="no text was found"):
        must_parse(WORDS, lambda text: [(0, 1)]).review(full)


def test_every_try_reaches_further_and_bars_the_token_most_in_doubt() -> None:
    ids = PieceTokenizer().encode("1,1,1,1")
    full = Canvas(torch.tensor(ids), torch.full((7,), SETTLED, dtype=torch.uint8), torch.linspace(0.9, 0.3, 7))
    rule = must_parse(WORDS, lambda text: [(3, 4)], tries=9)
    reached = [opened.tolist() for _ in range(3) if (opened := rule.review(full)) is not None]
    assert [sum(row) for row in reached] == [1, 3, 5]
    free = Canvas(full.ids, torch.zeros_like(full.state), full.confidence)
    constrained = rule.constrain(free, torch.zeros(7, SIZE))
    # In the first try the place at fault, then the less certain of its neighbours.
    assert torch.isneginf(constrained).nonzero().tolist() == [[3, ids[3]], [4, ids[4]], [5, ids[5]]]
    longer = Canvas.of([([MASK] * 8, FREE)])
    assert not torch.isneginf(rule.constrain(longer, torch.zeros(8, SIZE))).any()


def test_half_a_character_is_a_fault_of_the_place_that_wrote_it() -> None:
    half = PIECES.index("é".encode()[:1])
    full = Canvas.of([([0, half, 0], SETTLED)])
    opened = must_parse(WORDS, lambda text: []).review(full)
    assert opened is not None
    assert opened.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("span", "places"),
    [((0, 1), {2, 3}), ((4, 5), {3}), ((2, 5), {2, 3}), ((9, 12), {5}), ((6, 6), {2, 3}), ((3, 3), {2})],
)
def test_spans_are_laid_at_the_door_of_holes(span: tuple[int, int], places: set[int]) -> None:
    # Places 2, 3 and 5 are holes. Bytes: a( are 0-1, ab is 2-3, 23 is 4-5, ) is 6, a is 7, )) are 8-9.
    parts = (("a(", LOCKED), ("ab23", SETTLED), (")", LOCKED), ("a", SETTLED), ("))", LOCKED))
    full = Canvas.of([(PieceTokenizer().encode(text), state) for text, state in parts])
    assert CanvasText.of(full, WORDS).places([span]) == places


def test_spans_of_characters_become_spans_of_bytes() -> None:
    assert byte_spans("é🙂b", [(0, 1), (1, 2), (2, 99), (-1, 0)]) == [(0, 2), (2, 6), (6, 7), (0, 0)]


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


@settings(max_examples=100)
@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_what_comes_out_follows_the_schema(seed: int, places: int, together: int) -> None:
    rule = Combined([json_schema(WORDS, OBJECT, tries=10)])
    text = filled_or_failed(gap('{"a":', places, "}"), rule, seed, together)
    if text is not None:
        Draft202012Validator(OBJECT).validate(json.loads(text))


def test_a_value_of_the_wrong_kind_is_replaced() -> None:
    logits = torch.full((5, SIZE), -9.0)
    logits[3, PIECES.index(b"true")] = 6.0
    logits[3, PIECES.index(b"23")] = 5.0
    start = gap('{"a":', 1, "}")
    filled = denoised(start, json_schema(WORDS, OBJECT), lambda _: logits, 1)
    assert json.loads(CanvasText.of(filled, WORDS).data) == {"a": 23}


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ('{"a": 1}', []),
        ('{"a": "é"} ', [(6, 9)]),
        ('{"é": 2, "a": 1}', [(0, 16)]),
        ('{"a": }', [(6, 7)]),
        ('{"a": 1', [(7, 8)]),
        ('{"a": NaN}', [(0, 10)]),
        ("[" * 100_000, [(0, 100_000)]),
        ('{"a": 1, "a": true}', [(14, 18)]),
    ],
)
def test_faults_of_a_document_have_their_places(text: str, spans: list[tuple[int, int]]) -> None:
    assert schema_faults(OBJECT)(text) == spans


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(documents, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_value_is_found_where_it_stands(document: Any, indent: Any, ascii_only: bool) -> None:
    text = " " + json.dumps(document, indent=indent, ensure_ascii=ascii_only) + "\n"

    def check(value: Any, path: tuple[str | int, ...]) -> None:
        start, end = locate(text, path)
        assert json.loads(text[start:end]) == value
        assert text[start:end].strip() == text[start:end]
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in members:
            check(inner, (*path, key))

    check(document, ())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"$ref": "https://example.invalid/schema.json"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#"}}},
        {"type": ["null"], "required": 3},
        {"pattern": "^(a+)+$"},
        {"items": {"patternProperties": {"(x*)*y": {}}}},
        {"pattern": "(a)\\1"},
        {"pattern": "(a"},
    ],
)
def test_a_schema_that_cannot_be_used_is_a_bad_request(schema: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match="JSON Schema cannot be used") as failure:
        json_schema(WORDS, schema)
    assert failure.value.kind == "bad_request"


def test_an_ordinary_pattern_is_followed() -> None:
    faults = schema_faults({"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"})
    assert faults('"a-b"') == []
    assert faults('"a--b"') == [(0, 6)]


def test_a_circle_within_a_schema_is_told_from_a_document_that_is_too_deep() -> None:
    circle = schema_faults({"properties": {"a": {"$ref": "#/properties/a"}}})
    assert circle('{"b": 1}') == []
    with pytest.raises(EngineError, match="it refers to itself without end") as failure:
        circle('{"a": 1}')
    assert (failure.value.kind, bool(failure.value.remedy)) == ("bad_request", True)
    tree = schema_faults({"items": {"$ref": "#"}})
    assert tree("[[[1]]]") == []
    deep = "[" * 800 + "]" * 800
    assert tree(deep) == [(0, len(deep))]


def test_the_vocabulary_is_what_the_tokenizer_writes() -> None:
    assert isinstance(WORDS, Vocabulary)
    assert WORDS.pieces[: len(PIECES)] == PIECES
    assert WORDS.pieces[len(PIECES) :] == (b"", b"")
