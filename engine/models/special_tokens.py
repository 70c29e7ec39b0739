"""The special tokens of a model's folder, read from its tokenizer's files. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.models.checkpoint_json import object_or_empty


def special_tokens(folder: Path) -> dict[str, int]:
    """Text → id of every token the tokenizer's files name apart from its vocabulary; empty where there are no files.

    Reads tokenizer.json (`added_tokens`), tokenizer_config.json (`added_tokens_decoder`) and added_tokens.json; a
    file that cannot be read counts as not there, loading says what is wrong with it.
    """
    return dict(_pairs(folder))


def _pairs(folder: Path) -> Iterator[tuple[str, int]]:
    for text, index in object_or_empty(folder / "added_tokens.json").items():
        if isinstance(index, int):
            yield text, index
    decoder = object_or_empty(folder / "tokenizer_config.json").get("added_tokens_decoder")
    for index, token in decoder.items() if isinstance(decoder, dict) else ():
        if isinstance(token, dict) and str(index).isdigit():
            yield str(token.get("content", "")), int(index)
    added = object_or_empty(folder / "tokenizer.json").get("added_tokens")
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            yield str(token.get("content", "")), token["id"]
