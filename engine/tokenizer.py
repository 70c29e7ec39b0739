"""Text to ids and back, without loss and without special ids: `BpeTokenizer` and `ByteTokenizer`.

Special tokens are not part of the encoder at all, so that their text inside a document stays text; prompts put the
ids themselves. Nothing is normalised: the bytes that went in come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from engine.models.base import SpecialIds
from engine.protocol.errors import EngineError

QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's pre-tokenisation: one digit per piece, a word keeps one leading space or sign."""

_BYTES = 256
_BYTE_SPECIALS = ("fim_prefix", "fim_suffix", "fim_middle", "chat_start", "chat_end", "end_of_text")


class BpeTokenizer:
    """Byte-level BPE over a fixed vocabulary. Raises EngineError(bad_request) for text with lone surrogates."""

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend
        self._byte_of = {character: byte for byte, character in byte_alphabet().items()}

    @classmethod
    def from_vocabulary(cls, tokens: Sequence[str], special: frozenset[int], merges: Sequence[str]) -> BpeTokenizer:
        """Build from token strings by id and merges ("left right") in rank order; `special` ids are left out."""
        vocabulary = {token: index for index, token in enumerate(tokens) if index not in special}
        pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
        backend = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
        split = pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated")
        to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
        return cls(backend)

    @classmethod
    def load(cls, path: Path) -> BpeTokenizer:
        """Read what `save` wrote. Raises ValueError for a file that is something else."""
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as fault:  # the library raises nothing more precise
            raise ValueError(f"{path} is no tokenizer: {fault}") from fault

    def save(self, path: Path) -> None:
        self._backend.save(str(path), pretty=False)

    def encode(self, text: str) -> list[int]:
        require_unicode(text)
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        pieces = (self._backend.id_to_token(index) if index >= 0 else None for index in ids)
        return bytes(self._byte_of[character] for piece in pieces if piece for character in piece)


class ByteTokenizer:
    """One id per byte and a few special ids behind them: the tokenizer of the `tiny` family."""

    vocab_size = _BYTES + len(_BYTE_SPECIALS)

    def encode(self, text: str) -> list[int]:
        require_unicode(text)
        return list(text.encode())

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(index for index in ids if 0 <= index < _BYTES)

    def special_ids(self) -> SpecialIds:
        prefix, suffix, middle, chat_start, chat_end, end_of_text = range(_BYTES, self.vocab_size)
        return SpecialIds(
            fim_prefix=prefix,
            fim_suffix=suffix,
            fim_middle=middle,
            chat_start=chat_start,
            chat_end=chat_end,
            end=frozenset({chat_end, end_of_text}),
            special=frozenset(range(_BYTES, self.vocab_size)),
        )


def byte_alphabet() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte (Radford et al. 2019): byte to character, a bijection."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    alphabet = {byte: chr(byte) for byte in printable}
    rest = (byte for byte in range(_BYTES) if byte not in alphabet)
    alphabet.update((byte, chr(_BYTES + index)) for index, byte in enumerate(rest))
    return alphabet


def require_unicode(text: str) -> None:
    """Raise EngineError(bad_request) for text with lone surrogates, which has no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise EngineError(
            "bad_request",
            f"the text is not valid Unicode: a lone surrogate at character {fault.start}",
            "send text that can be written as UTF-8",
        ) from None
