"""A `Denoiser` over a few words whose next token is written down: for what depends on where tokens begin and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from engine.models.base import CanvasRows, Context, ModelFacts, SpecialIds
from engine.models.hybrid import MASK_ID
from engine.runtime.cache import common_prefix


class WordTokenizer:
    """Takes the longest known word at each place. Words may be bytes that make no character alone."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = words

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), []
        while data:
            word = max((each for each in self.words if data.startswith(each)), key=len)
            ids.append(self.words.index(word))
            data = data[len(word) :]
        return ids

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(self.words[each] for each in ids if each < len(self.words))


@dataclass(slots=True)
class WordContext:
    """Which ids were encoded, and the rows in all."""

    encoded: list[int] = field(default_factory=list)
    length: int = 0

    def truncate(self, length: int) -> None:
        self.length = length
        del self.encoded[length:]


class WordModel:
    """`likes`: by a word, the words that may follow it, the likeliest first; what is not written ends the text, and so
    does no word at all. `reads`: the same where rows run without the adapter, that is, of text that is no gap's.

    `encoded` and `stepped` are the numbers of rows of all calls, in their order.
    """

    def __init__(
        self,
        words: Sequence[bytes],
        likes: Mapping[bytes, Sequence[bytes]],
        reads: Mapping[bytes, Sequence[bytes]] | None = None,
    ) -> None:
        self.tokenizer = WordTokenizer(words)
        self._likes = likes
        self._reads = likes if reads is None else reads
        self._kept: list[WordContext] = []
        self.encoded: list[int] = []
        self.stepped: list[int] = []
        self.spares = True
        # As in real vocabularies the special ids are the highest.
        prefix, suffix, middle, start, end = range(len(words), len(words) + 5)
        special = SpecialIds(prefix, suffix, middle, start, end, frozenset({end}), frozenset(range(prefix, end + 1)))
        self.facts = ModelFacts("words", "words", "cpu", "fp32", "", end + 1, 512, MASK_ID, None, special)

    def context_for(self, ids: Sequence[int]) -> WordContext:
        shared = max((common_prefix(each.encoded, ids) for each in self._kept), default=0)
        context = WordContext(list(ids[:shared]), shared)
        self._kept.append(context)
        return context

    def spare_context_for(self, ids: Sequence[int]) -> WordContext | None:
        context = self.context_for(ids)
        return context if self.spares and context.length < len(ids) else None

    def release(self, context: Context) -> None:
        context.truncate(len(_own(context).encoded))

    def encode(self, context: Context, ids: Sequence[int]) -> None:
        own = _own(context)
        self.encoded.append(len(ids))
        own.encoded += ids
        own.length += len(ids)

    def step(self, context: Context, rows: CanvasRows) -> torch.Tensor:
        own = _own(context)
        assert rows.positions.tolist() == list(range(own.length, own.length + len(rows.ids)))
        self.stepped.append(len(rows.ids))
        own.length += len(rows.ids)
        wanted = len(rows.ids) if rows.logit_rows is None else rows.logit_rows
        likes = self._likes if rows.adapted else self._reads
        return torch.stack([self._logits(each, likes) for each in rows.ids[:wanted].tolist()] or [torch.zeros(0)])

    def _logits(self, token: int, likes: Mapping[bytes, Sequence[bytes]]) -> torch.Tensor:
        logits = torch.full((self.facts.vocab_size,), -9.0)
        end = max(self.facts.special.end)
        logits[end] = 0.0
        for rank, word in enumerate(likes.get(self.tokenizer.decode_bytes([token]), ())):
            logits[self.tokenizer.words.index(word) if word else end] = 10.0 - rank
        return logits


def _own(context: Context) -> WordContext:
    assert isinstance(context, WordContext)
    return context
