"""What each id of a vocabulary writes: `Vocabulary`, made once for a model and shared by all its constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasFacts


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """pieces: the UTF-8 bytes of every id; a piece may begin or end inside a character. Special ids write nothing.

    characters, lines: [vocab] int64, how many characters begin in the piece, and how many line ends it holds: both add
    up over a text. silent: [vocab] bool, the ids that write nothing and yet may come out: ends, expand and delete.
    ends: ids behind which a hole holds no text.
    """

    pieces: tuple[bytes, ...]
    characters: torch.Tensor
    lines: torch.Tensor
    silent: torch.Tensor
    ends: frozenset[int]

    @classmethod
    def of(cls, tokenizer: Tokenizer, facts: CanvasFacts) -> Vocabulary:
        """Read every id of the model's head; those beyond the tokenizer write nothing."""
        silent = (*facts.end_ids, facts.expand_id, facts.delete_id)
        return cls.read(tokenizer, facts.vocab_size, facts.end_ids, silent)

    @classmethod
    def read(cls, tokenizer: Tokenizer, size: int, ends: frozenset[int], silent_ids: Iterable[int]) -> Vocabulary:
        """Of `size` ids: `ends` end a text, and `silent_ids` (those below 0 stand for none) may come out."""
        pieces = tuple(tokenizer.decode_bytes([token]) for token in range(size))
        silent = torch.zeros(size, dtype=torch.bool)
        silent[[token for token in silent_ids if token >= 0]] = True
        return cls(
            pieces=pieces,
            # Bytes 10xxxxxx go on with a character, all others begin one.
            characters=torch.tensor([sum(byte & 0xC0 != 0x80 for byte in piece) for piece in pieces]),
            lines=torch.tensor([piece.count(b"\n") for piece in pieces]),
            silent=silent,
            ends=ends,
        )

    def limits(self, max_lines: int, max_characters: int) -> list[tuple[int, torch.Tensor]]:
        """(most units a text may hold, [vocab] units of each id) for each limit that is set; 0 is none."""
        limits = []
        if max_lines:
            limits.append((max_lines - 1, self.lines))
        if max_characters:
            limits.append((max_characters, self.characters))
        return limits

    def writing_only(self, allowed: Callable[[str], bool] | Iterable[str]) -> torch.Tensor:
        """[vocab] bool: ids that write allowed characters and nothing else, and the silent ones.

        allowed: the characters, or a predicate on one. A piece with a part of a character is out: what it would become
        depends on its neighbours.
        """
        accepts = allowed if callable(allowed) else frozenset(allowed).__contains__
        fits = [_writes_only(piece, accepts) for piece in self.pieces]
        return torch.tensor(fits, dtype=torch.bool) | self.silent


def _writes_only(piece: bytes, accepts: Callable[[str], bool]) -> bool:
    try:
        return bool(piece) and all(map(accepts, piece.decode("utf-8")))
    except UnicodeDecodeError:
        return False
