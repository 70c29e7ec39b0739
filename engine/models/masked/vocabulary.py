"""A checkpoint's tokenizer as this engine reads it: `Vocabulary`, and which ids the roles of a layout have.

Special tokens are taken out of the encoder, so that their text inside a document stays text; normalisers are left out,
so that the bytes that went in come out. No code and no template of the checkpoint is run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Backend

from engine.models.checkpoint_json import damaged, read_object
from engine.models.masked.families import Layout, Token
from engine.protocol.errors import EngineError
from engine.tokenizer import QWEN2_SPLIT, BpeTokenizer, byte_alphabet

TOKENIZER = "tokenizer.json"
WORDS, MERGES, SETTINGS = "vocab.json", "merges.txt", "tokenizer_config.json"
"""The same in parts, as the Dream family is published."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """ids: of every token by its text, special ones included. special: ids that are no text.

    says_split: whether the files say how text is cut before it is encoded; if not it is cut as for Qwen2.
    """

    tokenizer: BpeTokenizer
    ids: Mapping[str, int]
    special: frozenset[int]
    says_split: bool = True

    @property
    def size(self) -> int:
        """One past the last id."""
        return max(self.ids.values(), default=-1) + 1

    @property
    def special_texts(self) -> frozenset[str]:
        """Texts of the special tokens."""
        return frozenset(text for text, index in self.ids.items() if index in self.special)


@dataclass(frozen=True, slots=True)
class Roles:
    """The ids of a layout's special tokens in one checkpoint; -1 for what it does not have.

    turns: ids of the marks its chat turns are made of, by their text (see `prompts`).
    """

    mask: int
    ends: tuple[int, ...]
    start: int
    stop: int
    expand: int
    delete: int
    turns: Mapping[str, int]


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the tokenizer of a checkpoint: a byte-level BPE, in the `tokenizers` library's own format or in parts.

    Raises EngineError(model_corrupt) for a file that is missing or damaged, EngineError(model_unsupported) for a
    tokenizer of another kind.
    """
    in_parts = not (folder / TOKENIZER).is_file() and (folder / WORDS).is_file()
    stored = _from_parts(folder) if in_parts else read_object(folder / TOKENIZER)
    model = stored.get("model")
    if (
        not isinstance(model, dict)
        or model.get("type") not in {"BPE", None}
        or not isinstance(model.get("vocab"), dict)
    ):
        raise _unsupported(folder, "is no BPE")
    if not _is_byte_level(stored.get("pre_tokenizer")):
        raise _unsupported(folder, "does not work on bytes")
    added = {str(token["content"]): int(token["id"]) for token in stored.get("added_tokens") or ()}
    words: dict[str, int] = model["vocab"]
    alphabet = set(byte_alphabet().values())
    special = set(added.values()) | {index for text, index in words.items() if not alphabet.issuperset(text)}
    bare = {
        **stored,
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        "truncation": None,
        "padding": None,
        "model": {**model, "vocab": {text: index for text, index in words.items() if index not in special}},
    }
    try:
        backend = Backend.from_str(json.dumps(bare))
    except Exception as fault:  # the library raises nothing more precise
        raise damaged(folder / (WORDS if in_parts else TOKENIZER), f"it is no tokenizer: {fault}") from fault
    return Vocabulary(BpeTokenizer(backend), {**words, **added}, frozenset(special), says_split=not in_parts)


def _from_parts(folder: Path) -> dict[str, Any]:
    """What a tokenizer.json would hold, from the files of a tokenizer that is published with code of its own.

    vocab.json: id by token. merges.txt: a version line, then "left right" in rank order. tokenizer_config.json: the
    special tokens by their id.
    """
    try:
        lines = (folder / MERGES).read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as fault:
        raise damaged(folder / MERGES, str(fault)) from fault
    special = read_object(folder / SETTINGS).get("added_tokens_decoder")
    if not isinstance(special, dict):
        raise damaged(folder / SETTINGS, "it names no special tokens")
    try:
        added = [{"id": int(index), "content": str(token["content"])} for index, token in special.items()]
    except (KeyError, TypeError, ValueError) as fault:
        raise damaged(folder / SETTINGS, f"a special token cannot be read: {fault}") from fault
    merges = [line for line in lines if line and not line.startswith("#version")]
    cut = {"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False}
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, to_bytes]},
        "model": {"type": "BPE", "vocab": read_object(folder / WORDS), "merges": merges},
    }


def require_rows(vocabulary: Vocabulary, rows: int, folder: Path) -> None:
    """Raise EngineError(model_corrupt) unless every token that text can become has one of `rows` embeddings."""
    last = max((index for index in vocabulary.ids.values() if index not in vocabulary.special), default=-1)
    if last >= rows:
        raise damaged(folder / TOKENIZER, f"token {last} has no embedding, there are {rows}")


def roles_of(layout: Layout, vocabulary: Vocabulary, config: Mapping[str, Any], rows: int) -> Roles:
    """The ids of a layout's special tokens: by text in the vocabulary, else as config.json says, else as published.

    rows: of the embedding. Raises EngineError(model_unsupported) when the mask, an end or a length token is nowhere.
    """

    def find(token: Token, stated: str = "") -> int:
        for text in token.texts:
            if vocabulary.ids.get(text, rows) < rows:
                return vocabulary.ids[text]
        said = config.get(stated)
        for index in (said if isinstance(said, int) else -1, token.published):
            if 0 <= index < rows:
                return index
        return -1

    def require(token: Token, role: str, stated: str = "") -> int:
        index = find(token, stated)
        if index < 0:
            named = " or ".join(token.texts) or f"id {token.published}"
            raise EngineError(
                "model_unsupported",
                f"a checkpoint of the layout {layout.name} needs the {role} token {named}, and this one has none",
                "use the published checkpoint with its own tokenizer.json",
            )
        return index

    def optional(token: Token, role: str) -> int:
        return require(token, role) if token.texts or token.published >= 0 else -1

    ends = {find(token) for token in layout.ends} - {-1}
    if layout.ends and not ends:
        require(layout.ends[0], "end")
    return Roles(
        mask=require(layout.mask, "mask", "mask_token_id"),
        ends=tuple(sorted(ends)),
        start=optional(layout.start, "start"),
        stop=optional(layout.stop, "stop"),
        expand=optional(layout.expand, "expand"),
        delete=optional(layout.delete, "delete"),
        turns={text: index for text, index in vocabulary.ids.items() if index in vocabulary.special and index < rows},
    )


def forbidden_ids(vocabulary: Vocabulary, roles: Roles, rows: int) -> torch.Tensor:
    """[rows] bool: the mask, special ids without a meaning inside a gap, and rows no token belongs to."""
    forbidden = torch.ones(rows, dtype=torch.bool)
    forbidden[[index for index in vocabulary.ids.values() if index < rows]] = False
    forbidden[[index for index in vocabulary.special if index < rows]] = True
    forbidden[[index for index in (*roles.ends, roles.expand, roles.delete) if index >= 0]] = False
    forbidden[roles.mask] = True
    return forbidden


def _is_byte_level(pre_tokenizer: Any) -> bool:
    if not isinstance(pre_tokenizer, dict):
        return False
    if pre_tokenizer.get("type") == "Sequence":
        return any(_is_byte_level(part) for part in pre_tokenizer.get("pretokenizers", ()))
    return pre_tokenizer.get("type") == "ByteLevel" and not pre_tokenizer.get("add_prefix_space", False)


def _unsupported(folder: Path, what: str) -> EngineError:
    return EngineError(
        "model_unsupported",
        f"the tokenizer in {folder} {what}, so that text could not be brought back byte for byte",
        "use a checkpoint with a byte-level BPE tokenizer, as all published masked families have",
    )
