"""Which ids of the vocabulary the shards use most: the reduced output layer's. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from engine.training.shards import Shard, TokenHole


def frequent_ids(shards: Sequence[Shard], count: int, always: frozenset[int], vocabulary: int) -> torch.Tensor:
    """The `count` most frequent ids of the gaps and what surrounds them, `always` among them: sorted, distinct, int64.

    Ids no shard uses fill up from the lowest (byte-pair merges are ranked by frequency). Raises ValueError when
    `count` is more than the vocabulary or less than `always`, and when a shard holds an id beyond the vocabulary.
    """
    if count < len(always):
        raise ValueError(f"{count} frequent ids are asked for, {len(always)} must be among them")
    if count > vocabulary:
        raise ValueError(f"{count} frequent ids are asked for, the vocabulary holds {vocabulary}")
    seen: Counter[int] = Counter()
    for shard in shards:
        for index in range(len(shard)):
            hole = shard[index]
            require_known(hole, vocabulary)
            seen.update(hole.middle)
            seen.update(hole.suffix)
    ranked = [*sorted(always), *(token for token, _ in seen.most_common()), *range(vocabulary)]
    return torch.tensor(sorted(dict.fromkeys(ranked[: _enough(ranked, count)])), dtype=torch.int64)


def require_known(hole: TokenHole, vocabulary: int) -> None:
    """Raise ValueError for a hole with an id beyond the vocabulary, before a look-up of it goes astray."""
    if (highest := max((*hole.prefix, *hole.middle, *hole.suffix), default=0)) >= vocabulary:
        raise ValueError(
            f"the shards hold the id {highest} and the model has {vocabulary} ids: they were made with another"
            " model's tokenizer, make them again with this one's"
        )


def _enough(ranked: Sequence[int], count: int) -> int:
    """How many leading entries hold `count` distinct ones."""
    distinct: set[int] = set()
    for place, token in enumerate(ranked):
        distinct.add(token)
        if len(distinct) == count:
            return place + 1
    return len(ranked)
