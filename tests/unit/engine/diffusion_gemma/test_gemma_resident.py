"""The resident cache alone: what a layer sees, where rows are written, cutting and copying."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.models.diffusion_gemma.resident import GemmaContext, LayerShape, ResidentCache, ResidentShape
from engine.runtime.cache import ContextPool

WINDOW = 4
LAYERS = (LayerShape(kv_heads=2, head_dim=3, window=WINDOW), LayerShape(kv_heads=1, head_dim=5, window=0))
SHAPE = ResidentShape(LAYERS, torch.float32, torch.device("cpu"))


def rows(layer: int, ids: list[int]) -> torch.Tensor:
    """Keys whose values are the ids themselves."""
    shape = LAYERS[layer]
    return torch.tensor(ids, dtype=torch.float32)[None, None, :, None].expand(1, shape.kv_heads, -1, shape.head_dim)


def encode(context: GemmaContext, ids: list[int]) -> list[list[int]]:
    """Append ids to every layer; which ids the new rows see in each."""
    context.cache.reserve(len(ids))
    seen = []
    for layer in range(len(LAYERS)):
        keys, values = context.cache.update(rows(layer, ids), -rows(layer, ids), layer)
        assert torch.equal(keys, -values)
        seen.append([int(value) for value in keys[0, 0, :, 0]])
    context.remember(ids)
    return seen


def canvas(context: GemmaContext, ids: list[int]) -> list[list[int]]:
    """What a canvas sees in each layer."""
    context.cache.reserve(len(ids))
    seen = []
    for layer in range(len(LAYERS)):
        keys, values = context.cache.with_canvas(layer, rows(layer, ids), -rows(layer, ids))
        assert torch.equal(keys, -values)
        seen.append([int(value) for value in keys[0, 0, :, 0]])
    return seen


def test_a_sliding_layer_sees_its_window_and_a_full_one_everything() -> None:
    context = GemmaContext(SHAPE)
    assert encode(context, [1, 2]) == [[1, 2], [1, 2]]
    assert context.cache.get_mask_sizes(3, 0) == (5, 0)
    assert encode(context, [3, 4, 5]) == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
    assert context.cache.get_mask_sizes(2, 0) == (5, 2)
    assert context.cache.get_mask_sizes(2, 1) == (7, 0)
    assert encode(context, [6, 7]) == [[3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7]]
    assert canvas(context, [8, 9]) == [[5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8, 9]]


def test_it_agrees_with_transformers_cache_row_for_row() -> None:
    from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

    sliding: Any = DynamicSlidingWindowLayer(WINDOW)
    full: Any = DynamicLayer()  # type: ignore[no-untyped-call]
    theirs = Cache(layers=[sliding, full])
    mine: Any = ResidentCache(SHAPE)
    start = 0
    for count in (1, 2, 1, 5, 1):
        ids = list(range(start, start + count))
        mine.reserve(count)
        for layer in range(2):
            assert mine.get_mask_sizes(count, layer) == theirs.get_mask_sizes(count, layer)
            found = mine.update(rows(layer, ids), -rows(layer, ids), layer)
            wanted = theirs.update(rows(layer, ids), -rows(layer, ids), layer)
            assert [torch.equal(one, other) for one, other in zip(found, wanted, strict=True)] == [True, True]
            assert torch.equal(mine.layers[layer].keys, (sliding, full)[layer].keys)
        start += count
        assert mine.get_seq_length() == theirs.get_seq_length() == start


def test_a_canvas_leaves_no_trace() -> None:
    context = GemmaContext(SHAPE)
    encode(context, [1, 2, 3, 4, 5, 6])
    assert canvas(context, [70, 71, 72])[1] == [1, 2, 3, 4, 5, 6, 70, 71, 72]
    assert canvas(context, [80])[1] == [1, 2, 3, 4, 5, 6, 80]
    assert encode(context, [7])[0] == [4, 5, 6, 7]
    assert context.cache.length == 7


def test_cutting_brings_back_what_a_sliding_layer_had_passed() -> None:
    context = GemmaContext(SHAPE)
    encode(context, list(range(1, 21)))
    context.truncate(6)
    assert list(context.encoded) == [1, 2, 3, 4, 5, 6]
    assert encode(context, [30]) == [[4, 5, 6, 30], [1, 2, 3, 4, 5, 6, 30]]


@pytest.mark.parametrize("length", [-1, 4])
def test_a_context_cannot_be_cut_to_more_than_it_holds(length: int) -> None:
    context = GemmaContext(SHAPE)
    encode(context, [1, 2, 3])
    with pytest.raises(ValueError, match="cannot truncate 3"):
        context.truncate(length)


def test_growing_keeps_what_is_there() -> None:
    context = GemmaContext(SHAPE)
    ids = list(range(1300))
    encode(context, ids[:500])
    encode(context, ids[500:])
    assert canvas(context, [9000])[1] == [*ids, 9000]


def test_rows_without_room_are_an_error_and_not_written() -> None:
    cache = ResidentCache(SHAPE)
    with pytest.raises(ValueError, match="reserve"):
        cache.update(rows(0, [1]), rows(0, [1]), 0)


def test_two_texts_in_turn_keep_their_contexts_and_share_what_is_common() -> None:
    pool = ContextPool(lambda: GemmaContext(SHAPE))
    first, second = [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 20, 21, 22]
    for ids in (first, second, first, second):
        context = pool.context_for(ids)
        shared = len(context.encoded)
        encode(context, ids[shared:])
        assert canvas(context, [99])[1] == [*ids, 99]
        pool.release(context)
    assert len(pool.context_for(first).encoded) == len(first)


def test_the_bytes_of_a_cache_are_known_before_it_is_made() -> None:
    context = GemmaContext(SHAPE)
    context.cache.reserve(700)
    assert SHAPE.bytes_of(700) == sum(store.nbytes for store in context.cache.stores)
