"""The pool of resident contexts: which one a request gets, what is let go for it, and how much memory all take."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
import torch

from engine.runtime.cache import LOST_ROWS, CachedContext, CacheShape, ContextPool, common_prefix

SHAPE = CacheShape(
    layers=2, kv_heads=2, head_dim=4, window_tokens=1000, dtype=torch.float32, device=torch.device("cpu")
)
ONE = CachedContext(SHAPE).nbytes_for(10)
"""Bytes of a short context."""
FIRST, SECOND, THIRD = (list(range(base, base + 100)) for base in (1000, 2000, 3000))


def pool_of(most_bytes: int = 100 * ONE) -> ContextPool[CachedContext]:
    return ContextPool(lambda: CachedContext(SHAPE), most_bytes)


def fill(context: CachedContext, ids: Sequence[int]) -> None:
    """Rows that say which id they are."""
    rows = torch.tensor(ids, dtype=torch.float32)[:, None, None].expand(len(ids), SHAPE.kv_heads, SHAPE.head_dim)
    context.cache.reserve(len(ids))
    for layer in range(SHAPE.layers):
        context.cache.put(layer, rows, rows)
    context.cache.advance(len(ids))


def encode(context: CachedContext, ids: Sequence[int]) -> None:
    if ids:
        fill(context, ids)
        context.remember(ids)


def contents(context: CachedContext) -> list[int]:
    return [int(value) for value in context.cache.view(1, context.length)[0][0, :, 0]]


def use(pool: ContextPool[CachedContext], ids: list[int]) -> list[int]:
    """One job after another: take a context, encode what is missing, give it back. Returns what was resident."""
    context = pool.context_for(ids)
    resident = contents(context)
    encode(context, ids[len(resident) :])
    pool.release(context)
    return resident


def test_the_context_with_the_longest_common_prefix_is_used() -> None:
    pool = pool_of()
    use(pool, [1, 2, 3, 4])
    use(pool, [9, 8, 7, 6])
    assert use(pool, [9, 8, 7, 5, 5]) == [9, 8, 7]
    assert use(pool, [1, 2, 3, 4, 5]) == [1, 2, 3, 4]


def test_never_more_rows_than_asked_for() -> None:
    pool = pool_of()
    use(pool, [1, 2, 3, 4])
    assert use(pool, [1, 2, 3]) == [1, 2, 3]


def test_what_would_lose_much_is_copied_and_stays() -> None:
    pool = pool_of()
    use(pool, FIRST)
    assert use(pool, [*FIRST[:20], 500, 501]) == FIRST[:20]
    assert use(pool, FIRST) == FIRST
    assert use(pool, [*FIRST[:20], 500, 501]) == [*FIRST[:20], 500, 501]


def test_what_loses_little_is_cut_and_takes_no_second_context() -> None:
    pool = pool_of()
    use(pool, FIRST)
    before = pool.nbytes
    kept = FIRST[: len(FIRST) - LOST_ROWS]
    assert use(pool, [*kept, 7]) == kept
    assert pool.nbytes == before


def test_a_head_that_several_documents_share_is_computed_once() -> None:
    pool, head = pool_of(), list(range(60))
    for number in range(5):
        assert use(pool, head + [1000 * number + at for at in range(1, 90)]) == (head if number else [])


def test_many_places_stay_resident_within_the_bytes() -> None:
    pool = pool_of(10 * ONE)
    places = [list(range(base, base + 100)) for base in range(0, 10_000, 1000)]
    for ids in places:
        use(pool, ids)
    assert all(use(pool, ids) == ids for ids in places)


def test_what_was_not_used_for_longest_is_let_go() -> None:
    pool = pool_of(2 * ONE)
    for ids in (FIRST, SECOND, FIRST, THIRD):
        use(pool, ids)
    assert use(pool, FIRST) == FIRST
    assert use(pool, THIRD) == THIRD
    assert use(pool, SECOND) == []


def test_where_only_one_context_fits_it_is_cut() -> None:
    pool = pool_of(0)
    use(pool, FIRST)
    assert use(pool, [*FIRST[:3], 7]) == FIRST[:3]
    assert use(pool, SECOND) == []
    assert use(pool, SECOND) == SECOND
    assert pool.nbytes == ONE


def test_the_bytes_hold_whatever_is_asked() -> None:
    """Contexts of all lengths, of which many share a beginning, one job after another."""
    dice, most = Random(3), 6 * ONE
    pool = pool_of(most)
    heads = [list(range(base, base + 400)) for base in (0, 5000)]
    seen = 0
    for number in range(300):
        head = dice.choice(heads)[: dice.randrange(400)]
        use(pool, [*head, *(10_000 * number + at for at in range(dice.randrange(1, 500)))])
        assert pool.nbytes <= most
        seen = max(seen, pool.nbytes)
    assert seen > most - 2 * ONE


def test_a_context_in_use_is_copied_not_cut() -> None:
    pool = pool_of(2 * ONE)
    held = pool.context_for([1, 2, 3, 4])
    encode(held, [1, 2, 3, 4])
    for tail in (5, 6, 7):
        assert use(pool, [1, 2, 3, tail]) == [1, 2, 3]
    assert contents(held) == [1, 2, 3, 4]


def test_contexts_beyond_the_bytes_live_as_long_as_they_are_in_use() -> None:
    pool = pool_of(2 * ONE)
    held = [pool.context_for([base]) for base in range(4)]
    for base, context in enumerate(held):
        encode(context, [base, 10 + base])
    assert [contents(context) for context in held] == [[base, 10 + base] for base in range(4)]
    for context in held:
        pool.release(context)
    assert pool.nbytes <= 2 * ONE


def test_a_spare_context_leaves_the_one_it_is_made_from() -> None:
    pool = pool_of()
    use(pool, FIRST)
    ahead = [*FIRST[:90], *SECOND]
    spare = pool.spare_context_for(ahead)
    assert spare is not None
    assert contents(spare) == FIRST[:90]
    encode(spare, SECOND[:50])
    pool.release(spare)
    again = pool.spare_context_for(ahead)
    assert again is not None
    assert contents(again) == [*FIRST[:90], *SECOND[:50]]
    encode(again, SECOND[50:])
    pool.release(again)
    assert pool.spare_context_for(ahead) is None
    assert use(pool, FIRST) == FIRST
    assert use(pool, ahead) == ahead


def test_there_is_no_spare_context_at_the_cost_of_what_was_used_last() -> None:
    pool = pool_of(2 * ONE)
    use(pool, FIRST)
    use(pool, SECOND)
    assert pool.spare_context_for(THIRD) is None
    assert use(pool, FIRST) == FIRST
    assert use(pool, SECOND) == SECOND


def test_a_released_context_keeps_what_was_encoded_and_forgets_steps() -> None:
    pool = pool_of()
    context = pool.context_for([1, 2, 3, 4, 5])
    encode(context, [1, 2])
    fill(context, [3])
    encode(context, [4, 5])
    assert list(context.encoded) == [1, 2]
    pool.release(context)
    assert context.length == 2
    assert use(pool, [1, 2, 3, 4, 5]) == [1, 2]


def test_encoding_after_truncating_a_step_is_matched() -> None:
    context = pool_of().context_for([1, 2, 3])
    encode(context, [1, 2])
    fill(context, [9, 9])
    context.truncate(2)
    encode(context, [3])
    assert list(context.encoded) == [1, 2, 3]


def test_negative_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        pool_of(-1)


def test_common_prefix() -> None:
    assert common_prefix([], [1]) == 0
    assert common_prefix([1, 2, 3], [1, 2]) == 2
    assert common_prefix([1, 2], [1, 3]) == 1
