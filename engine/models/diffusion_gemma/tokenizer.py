"""Gemma's tokenizer, read from tokenizer.json as data: text to ids and back without loss, and the special ids.

SentencePiece-like BPE with byte fallback: a space is written U+2581 inside, and what the vocabulary does not hold is
spelled in bytes. Special tokens are taken out of the encoder, so that their text inside a document stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from engine.models.checkpoint_json import damaged, read_object
from engine.models.diffusion_gemma.settings import unsupported
from engine.protocol.errors import EngineError
from engine.tokenizer import require_unicode

TOKENIZER = "tokenizer.json"
_SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# Reserved for later use, and not always marked as special.
_RESERVED = re.compile(r"<unused\d+>")


class GemmaTokenizer:
    """A `Tokenizer`. What does not come back byte for byte is refused: EngineError(round_trip)."""

    def __init__(self, backend: Backend, bytes_of: Mapping[int, bytes], byte_ids: Mapping[int, int]) -> None:
        self._backend = backend
        self._bytes_of = bytes_of
        self._space = [byte_ids[byte] for byte in _SPACE.encode() if byte in byte_ids]

    def encode(self, text: str) -> list[int]:
        """Ids of `text`. Raises EngineError: bad_request for lone surrogates, round_trip for text it cannot hold."""
        require_unicode(text)
        ids: list[int] = []
        # The character that stands for a space inside would come back as one, so it is spelled in bytes.
        for index, piece in enumerate(text.split(_SPACE)):
            ids += [*(self._space if index else ()), *self._backend.encode(piece, add_special_tokens=False).ids]
        if self.decode_bytes(ids) != text.encode():
            raise EngineError(
                "round_trip",
                "the model's tokenizer does not give this text back byte for byte",
                "leave out the unusual characters, or use another model for this file",
            )
        return ids

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(self._bytes_of.get(index, b"") for index in ids)

    def can_decode(self, index: int) -> bool:
        """Whether an id stands for text."""
        return index in self._bytes_of


@dataclass(frozen=True, slots=True)
class GemmaVocabulary:
    """special: ids of the special tokens by their text."""

    tokenizer: GemmaTokenizer
    special: Mapping[str, int]


def read_vocabulary(folder: Path) -> GemmaVocabulary:
    """Read tokenizer.json. Raises EngineError: model_missing, model_corrupt, model_unsupported for another kind."""
    path = folder / TOKENIZER
    stored = read_object(path)
    model = stored.get("model")
    if not isinstance(model, dict) or model.get("type") != "BPE" or not model.get("byte_fallback"):
        raise unsupported(f"{path} is no BPE with byte fallback, as Gemma's is")
    try:
        words = {str(text): int(index) for text, index in model["vocab"].items()}
        added = {str(token["content"]): token for token in stored.get("added_tokens") or ()}
        special = {text: int(token["id"]) for text, token in added.items() if _is_special(text, token)}
        control = frozenset(special.values())
        plain = {text: index for text, index in words.items() if index not in control}
        backend = Backend.from_str(json.dumps(_without_special(stored, plain, special)))
    except Exception as fault:  # the library raises nothing more precise
        raise damaged(path, f"it is no tokenizer: {fault}") from fault
    kept = plain | {text: int(token["id"]) for text, token in added.items() if text not in special}
    byte_ids = {int(found[1], 16): index for text, index in plain.items() if (found := _BYTE.fullmatch(text))}
    bytes_of = {index: text.replace(_SPACE, " ").encode() for text, index in kept.items()}
    bytes_of |= {index: bytes([byte]) for byte, index in byte_ids.items()}
    return GemmaVocabulary(GemmaTokenizer(backend, bytes_of, byte_ids), special)


def _is_special(text: str, token: Mapping[str, Any]) -> bool:
    return bool(token.get("special")) or _RESERVED.fullmatch(text) is not None


def _without_special(stored: Mapping[str, Any], plain: Mapping[str, int], special: Mapping[str, int]) -> dict[str, Any]:
    """tokenizer.json without special tokens, without what adds some, and with unknown text in bytes only."""
    model = stored["model"]
    pairs = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ", 1)) for merge in model["merges"]]
    merges = [[left, right] for left, right in pairs if {left, right, left + right} <= plain.keys()]
    return {
        **stored,
        "added_tokens": [token for token in stored.get("added_tokens") or () if token["content"] not in special],
        "post_processor": None,
        "truncation": None,
        "padding": None,
        "decoder": None,
        "model": {**model, "vocab": plain, "merges": merges, "unk_token": None},
    }
