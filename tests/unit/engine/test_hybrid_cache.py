"""The key-value cache and attention over it, without a model."""

from __future__ import annotations

import pytest
import torch

from engine.protocol.errors import EngineError
from engine.runtime.attention import BLOCK, RotaryTable, attend
from engine.runtime.cache import CachedContext, CacheShape, KeyValueCache

SHAPE = CacheShape(
    layers=2, kv_heads=2, head_dim=4, window_tokens=1000, dtype=torch.float32, device=torch.device("cpu")
)


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


def test_the_bytes_of_a_context_are_known_before_it_is_made() -> None:
    context = CachedContext(SHAPE)
    expected = context.nbytes_for(500)
    fill(context, list(range(500)))
    assert context.nbytes == expected


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
