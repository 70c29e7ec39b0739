"""Tokenizers lose nothing, and no text becomes a special id."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.protocol.errors import EngineError
from engine.tokenizer import BpeTokenizer, ByteTokenizer, byte_alphabet
from tests.fakes.tiny_model import MERGES, SPECIALS, TOKENS

SPECIAL_IDS = frozenset(index for index, token in enumerate(TOKENS) if token in SPECIALS)
AWKWARD = [
    "",
    "\0\0",
    "a\r\nb\rc\n\n",
    "\U0001f469\u200d\U0001f4bb",
    "e\u0301 \u212b \ufb01",
    "\ufeffx",
    "<|endoftext|>",
    "x <|fim_middle|> y <|im_end|>\n",
    "    return  x\t\n",
    "\u3042\u4e2d\U00010348",
]


def bpe() -> BpeTokenizer:
    return BpeTokenizer.from_vocabulary(TOKENS, SPECIAL_IDS, MERGES)


@pytest.fixture(scope="module", params=["bpe", "byte"])
def tokenizer(request: pytest.FixtureRequest) -> BpeTokenizer | ByteTokenizer:
    return bpe() if request.param == "bpe" else ByteTokenizer()


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_comes_back_byte_for_byte(tokenizer: BpeTokenizer | ByteTokenizer, text: str) -> None:
    assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode()


@given(text=st.text())
def test_any_text_comes_back_byte_for_byte(tokenizer: BpeTokenizer | ByteTokenizer, text: str) -> None:
    assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode()


@pytest.mark.parametrize("special", SPECIALS)
def test_the_text_of_a_special_token_is_text(special: str) -> None:
    ids = bpe().encode(f"a{special}b")
    assert not SPECIAL_IDS & set(ids)
    assert bpe().decode_bytes(ids) == f"a{special}b".encode()


def test_text_is_not_normalised() -> None:
    text = "e\u0301"
    assert unicodedata.normalize("NFC", text) != text
    assert bpe().decode_bytes(bpe().encode(text)).decode() == text


def test_special_and_unknown_ids_have_no_bytes() -> None:
    [a] = bpe().encode("a")
    assert bpe().decode_bytes([a, *SPECIAL_IDS, len(TOKENS) + 5, -1, a]) == b"aa"
    assert ByteTokenizer().decode_bytes([97, 256, 300, -1, 98]) == b"ab"


def test_merges_are_used() -> None:
    assert [TOKENS[index] for index in bpe().encode("def")] == ["def"]
    assert [TOKENS[index] for index in bpe().encode("return")] == ["return"]


def test_digits_stay_apart_and_words_take_one_space() -> None:
    pieces = [TOKENS[index] for index in bpe().encode("    def")]
    assert pieces == ["ĠĠ", "Ġ", "Ġ", "def"]


def test_ids_may_end_inside_a_character() -> None:
    ids = ByteTokenizer().encode("é")
    assert ByteTokenizer().decode_bytes(ids[:1]) == b"\xc3"


def test_a_lone_surrogate_is_refused(tokenizer: BpeTokenizer | ByteTokenizer) -> None:
    with pytest.raises(EngineError) as failure:
        tokenizer.encode("ab\ud800")
    assert failure.value.kind == "bad_request"
    assert "character 2" in failure.value.message


def test_a_saved_tokenizer_loads_the_same(tmp_path: Path) -> None:
    bpe().save(tmp_path / "tokenizer.json")
    loaded = BpeTokenizer.load(tmp_path / "tokenizer.json")
    for text in AWKWARD:
        assert loaded.encode(text) == bpe().encode(text)


def test_the_byte_alphabet_is_a_bijection() -> None:
    alphabet = byte_alphabet()
    assert sorted(alphabet) == list(range(256))
    assert len(set(alphabet.values())) == 256
    assert alphabet[ord("a")] == "a"
    assert alphabet[ord(" ")] == "Ġ"


def test_byte_specials_are_distinct_and_outside_the_bytes() -> None:
    special = ByteTokenizer().special_ids()
    named = {special.fim_prefix, special.fim_suffix, special.fim_middle, special.chat_start, special.chat_end}
    assert len(named) == 5
    assert min(special.special) == 256
    assert named | special.end == special.special
    assert max(special.special) < ByteTokenizer.vocab_size
