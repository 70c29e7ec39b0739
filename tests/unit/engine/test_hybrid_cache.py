"""The key-value cache and the pool of contexts, without a model."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from engine.protocol.errors import EngineError
from engine.runtime.attention import BLOCK, RotaryTable, attend
from engine.runtime.cache import CachedContext, CacheShape, ContextPool, KeyValueCache, common_prefix

SHAPE = CacheShape(
    layers=2, kv_heads=2, head_dim=4, window_tokens=1000, dtype=torch.float32, device=torch.device("cpu")
)
MAKE = partial(CachedContext, SHAPE)


def fill(context: CachedContext, ids: list[int]) -> None:
    """Append rows whose keys and values are the ids themselves."""
    rows = torch.tensor(ids, dtype=torch.float32)[:, None, None].expand(-1, SHAPE.kv_heads, SHAPE.head_dim)
    context.cache.reserve(len(ids))
    for layer in range(SHAPE.layers):
        context.cache.put(layer, rows, -rows)
    context.cache.advance(len(ids))


def encode(context: CachedContext, ids: list[int]) -> None:
    fill(context, ids)
    context.remember(ids)


def contents(context: CachedContext) -> list[int]:
    keys, values = context.cache.view(1, context.length)
    assert torch.equal(keys, -values)
    return [int(value) for value in keys[0, :, 0]]


def test_rows_survive_growth() -> None:
    context = CachedContext(SHAPE)
    ids = list(range(900))
    for start in range(0, 900, 90):
        fill(context, ids[start : start + 90])
    assert contents(context) == ids
    assert context.cache.capacity % BLOCK == 0


def test_the_window_caps_a_cache_and_a_refusal_changes_nothing() -> None:
    cache = KeyValueCache(SHAPE)
    cache.reserve(1000)
    cache.advance(1000)
    with pytest.raises(EngineError) as failure:
        cache.reserve(1)
    assert failure.value.kind == "window_exceeded"
    assert "1001" in failure.value.message
    assert cache.length == 1000
    assert cache.capacity < 1000 + BLOCK


@pytest.mark.parametrize("length", [-1, 6])
def test_a_cache_cannot_be_truncated_to_more_than_it_holds(length: int) -> None:
    context = CachedContext(SHAPE)
    encode(context, [1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="cannot truncate 5"):
        context.truncate(length)
    assert contents(context) == [1, 2, 3, 4, 5]


def use(pool: ContextPool[CachedContext], ids: list[int]) -> list[int]:
    """One job after another: take a context, encode what is missing, give it back. Returns what was resident."""
    context = pool.context_for(ids)
    resident = contents(context)
    encode(context, ids[len(resident) :])
    pool.release(context)
    return resident


def test_the_context_with_the_longest_common_prefix_is_used() -> None:
    pool = ContextPool(MAKE)
    use(pool, [1, 2, 3, 4])
    use(pool, [9, 8, 7, 6])
    assert use(pool, [9, 8, 7, 5, 5]) == [9, 8, 7]
    assert use(pool, [1, 2, 3, 4, 5]) == [1, 2, 3, 4]


def test_never_more_rows_than_asked_for() -> None:
    pool = ContextPool(MAKE)
    use(pool, [1, 2, 3, 4])
    assert use(pool, [1, 2, 3]) == [1, 2, 3]


def test_a_short_common_prefix_is_copied_and_the_long_context_stays() -> None:
    pool = ContextPool(MAKE)
    long = list(range(100))
    use(pool, long)
    assert use(pool, [0, 1, 500, 501]) == [0, 1]
    assert use(pool, long) == long
    assert use(pool, [0, 1, 500, 501]) == [0, 1, 500, 501]


def test_the_least_recently_used_context_is_recycled() -> None:
    pool = ContextPool(MAKE, size=2)
    first, second, third = ([base + at for at in range(10)] for base in (100, 200, 300))
    for ids in (first, second, first, third):
        use(pool, ids)
    assert use(pool, first) == first
    assert use(pool, third) == third
    assert use(pool, second) == []


def test_the_donor_may_be_the_one_that_is_recycled() -> None:
    pool = ContextPool(MAKE, size=2)
    first, second = list(range(100, 200)), list(range(200, 300))
    use(pool, first)
    use(pool, second)
    assert use(pool, [*first[:3], 7]) == first[:3]


def test_a_context_in_use_is_copied_not_cut() -> None:
    pool = ContextPool(MAKE, size=2)
    held = pool.context_for([1, 2, 3, 4])
    encode(held, [1, 2, 3, 4])
    for tail in (5, 6, 7):
        assert use(pool, [1, 2, 3, tail]) == [1, 2, 3]
    assert contents(held) == [1, 2, 3, 4]


def test_contexts_beyond_the_size_live_as_long_as_they_are_in_use() -> None:
    pool = ContextPool(MAKE, size=2)
    held = [pool.context_for([base]) for base in range(4)]
    for base, context in enumerate(held):
        encode(context, [base, 10 + base])
    assert [contents(context) for context in held] == [[base, 10 + base] for base in range(4)]
    for context in held:
        pool.release(context)
    still = [base for base in range(4) if use(pool, [base, 10 + base]) == [base, 10 + base]]
    assert len(still) <= 2


def test_a_released_context_keeps_what_was_encoded_and_forgets_steps() -> None:
    pool = ContextPool(MAKE)
    context = pool.context_for([1, 2, 3, 4, 5])
    encode(context, [1, 2])
    fill(context, [3])
    encode(context, [4, 5])
    assert list(context.encoded) == [1, 2]
    pool.release(context)
    assert context.length == 2
    assert use(pool, [1, 2, 3, 4, 5]) == [1, 2]


def test_encoding_after_truncating_a_step_is_matched() -> None:
    pool = ContextPool(MAKE)
    context = pool.context_for([1, 2, 3])
    encode(context, [1, 2])
    fill(context, [9, 9])
    context.truncate(2)
    encode(context, [3])
    assert list(context.encoded) == [1, 2, 3]


def test_a_pool_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        ContextPool(MAKE, size=1)


def test_common_prefix() -> None:
    assert common_prefix([], [1]) == 0
    assert common_prefix([1, 2, 3], [1, 2]) == 2
    assert common_prefix([1, 2], [1, 3]) == 1


@pytest.mark.parametrize("positions", [BLOCK, 3 * BLOCK])
def test_attention_equals_torch_and_does_not_read_what_is_masked(positions: int) -> None:
    dice = torch.Generator().manual_seed(0)
    query = torch.randn(5, 6, 8, generator=dice)
    keys, values = torch.randn(2, 2, positions, 8, generator=dice)
    seen = torch.rand(5, positions, generator=dice) < 0.5
    seen[:, 0] = True
    bias = torch.zeros(5, positions).masked_fill(~seen, -torch.inf)
    result = attend(query, keys, values, bias, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys[None], values[None], attn_mask=seen, scale=0.3, enable_gqa=True
    )
    torch.testing.assert_close(result, expected[0].transpose(0, 1).reshape(5, 48), rtol=1e-4, atol=1e-5)
    hidden = ~seen.any(0)
    keys[:, hidden] = 1e6
    values[:, hidden] = 1e6
    assert torch.equal(attend(query, keys, values, bias, 0.3), result)


def test_rotation_depends_on_distance_only_and_keeps_length() -> None:
    table = RotaryTable(16, 10_000.0, 64, torch.device("cpu"))
    dice = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 16, generator=dice)

    def product(first: int, second: int) -> torch.Tensor:
        return (table.rotate(query, torch.tensor([first])) * table.rotate(key, torch.tensor([second]))).sum()

    torch.testing.assert_close(product(3, 10), product(43, 50), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(table.rotate(query, torch.tensor([33])).norm(), query.norm())
    assert torch.equal(table.rotate(query, torch.tensor([0])), query)
