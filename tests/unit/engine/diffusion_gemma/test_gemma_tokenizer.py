"""Gemma's tokenizer: every text comes back byte for byte, and no text becomes a token of control."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.diffusion_gemma.tokenizer import GemmaVocabulary, read_vocabulary
from engine.protocol.errors import EngineError
from tests.fakes.tiny_gemma import SPECIALS, tokenizer_table


def read(table: dict[str, Any] | str) -> GemmaVocabulary:
    with TemporaryDirectory() as folder:
        text = table if isinstance(table, str) else json.dumps(table)
        (Path(folder) / "tokenizer.json").write_text(text, encoding="utf-8")
        return read_vocabulary(Path(folder))


@cache
def tiny() -> GemmaVocabulary:
    return read(tokenizer_table())


CHARACTERS = st.characters(exclude_categories=["Cs"])
PIECES = st.sampled_from(
    [*SPECIALS.values(), "<unused7>", "<0x41>", "▁", "▁▁", "  ", "\n\n\n", "\r\n", "\t", "def ", "😀"]
)


@given(st.lists(PIECES | st.text(CHARACTERS, max_size=8), max_size=8).map("".join))
def test_any_text_comes_back_byte_for_byte_and_holds_no_special_id(text: str) -> None:
    ids = tiny().tokenizer.encode(text)
    assert tiny().tokenizer.decode_bytes(ids) == text.encode()
    assert not set(ids) & set(tiny().special.values())


def test_words_are_merged_and_runs_of_line_ends_are_one_token() -> None:
    ids = tiny().tokenizer.encode("return    x\n\n")
    assert len(ids) == 4
    assert tiny().tokenizer.decode_bytes(ids[1:2]) == b"    "
    assert ids[-1] == 108


def test_special_and_unknown_ids_have_no_bytes() -> None:
    tokenizer = tiny().tokenizer
    assert tokenizer.decode_bytes([2, 106, 7, 100_000, -1]) == b""
    assert [tokenizer.can_decode(index) for index in (0, 7, 106, 107, 100_000)] == [False, False, False, True, False]


def test_special_ids_are_known_by_their_text() -> None:
    assert {text: tiny().special[text] for text in SPECIALS.values()} == {
        text: index for index, text in SPECIALS.items()
    }


def test_merges_that_lead_to_a_special_token_are_left_out() -> None:
    table = tokenizer_table()
    table["model"]["merges"] += [["<", "e"], ["o", "s"], ["<e", "os"], ["<eos", ">"]]
    size = len(table["model"]["vocab"])
    table["model"]["vocab"] |= {"<e": size, "os": size + 1, "<eos": size + 2}
    vocabulary = read(table)
    assert 1 not in vocabulary.tokenizer.encode("<eos>")
    assert vocabulary.tokenizer.encode("<eos>")[0] == size + 2


def without_bytes() -> dict[str, Any]:
    table = copy.deepcopy(tokenizer_table())
    table["model"]["vocab"] = {
        piece: index for piece, index in table["model"]["vocab"].items() if not piece.startswith("<0x")
    }
    return table


@pytest.mark.parametrize("text", ["naïve", "a▁b", "日本"])
def test_text_a_vocabulary_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="byte for byte") as refused:
        read(without_bytes()).tokenizer.encode(text)
    assert refused.value.kind == "round_trip"
    assert refused.value.remedy


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(EngineError) as refused:
        tiny().tokenizer.encode("a\ud800b")
    assert refused.value.kind == "bad_request"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"model": {"type": "WordPiece", "vocab": {}}}, "model_unsupported"),
        ({"model": {"type": "BPE", "byte_fallback": False, "vocab": {}, "merges": []}}, "model_unsupported"),
        ({"model": None}, "model_unsupported"),
        ({"model": {"type": "BPE", "byte_fallback": True}}, "model_corrupt"),
        ({"added_tokens": [{"id": 1}]}, "model_corrupt"),
        ({"normalizer": {"type": "Nothing known"}}, "model_corrupt"),
    ],
)
def test_other_and_damaged_tokenizers_are_refused(change: dict[str, Any], kind: str) -> None:
    with pytest.raises(EngineError) as refused:
        read(tokenizer_table() | change)
    assert refused.value.kind == kind


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_file_that_is_no_object_is_corrupt(text: str) -> None:
    with pytest.raises(EngineError) as refused:
        read(text)
    assert refused.value.kind == "model_corrupt"
