"""Ids to rows behind one small interface: from a matrix of floats, or from the int8 matrix of the head."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.runtime.packed_matrix import PackedMatrix


class Embedding(Protocol):
    """ids: [n] int64 within the vocabulary; the result: [n, hidden] float32 on the device of the weights."""

    def __call__(self, ids: torch.Tensor) -> torch.Tensor: ...


class FloatEmbedding:
    """Rows of a [vocab, hidden] matrix of any floating dtype."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = weight

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(ids, self._weight).float()


class PackedEmbedding:
    """Rows of a packed [vocab, hidden] matrix: the head's own, where a model ties the two."""

    def __init__(self, matrix: PackedMatrix, hidden: int) -> None:
        self._matrix = matrix
        self._hidden = hidden

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        return self._matrix.rows(ids, self._hidden)
