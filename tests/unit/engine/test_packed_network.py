"""All layers in one call of the kernel: near what torch computes, and each row's result its own to the last bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.models.network import LayerWeights, RowPlan, Stack, run_stack
from engine.models.packed_network import PackedStack, kernel_of
from engine.models.shape import PARTS, Qwen2Shape
from engine.runtime.attention import RotaryTable
from engine.runtime.cache import CacheShape, KeyValueCache
from engine.runtime.linear import FloatLinear, Linear, LowRankLinear, quantise_per_channel
from engine.runtime.packed import Kernel, PackedInt8Linear, find_kernels, pack

KERNELS = find_kernels()
pytestmark = pytest.mark.skipif(not KERNELS, reason="the kernel was not built, or this processor cannot run it")
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)

WINDOW = 512
SHAPES = {
    "wide": Qwen2Shape(3, 64, 4, 2, 16, 96, 50, WINDOW, 1e4, 1e-6),
    "odd groups": Qwen2Shape(2, 56, 9, 3, 48, 40, 50, WINDOW, 1e4, 1e-6),
    "one head": Qwen2Shape(1, 896, 14, 2, 64, 128, 50, WINDOW, 1e6, 1e-6),
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def normal(generator: torch.Generator, *size: int) -> torch.Tensor:
    return torch.randn(size, generator=generator)


def packed(weight: torch.Tensor, kernel: Kernel) -> PackedInt8Linear:
    quantised, scale = quantise_per_channel(weight)
    return PackedInt8Linear(pack(quantised), scale, kernel, columns=weight.shape[1])


def random_stack(shape: Qwen2Shape, kernel: Kernel, *, rank: int = 0, seed: int = 0) -> Stack:
    """A stack of packed matrices; with a rank, half of the matrices have a patch beside them."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for _ in range(shape.layers):
        parts: dict[str, Linear] = {}
        for index, part in enumerate(PARTS):
            rows, columns = shape.part_size(part)
            parts[part] = packed(normal(generator, rows, columns) / columns**0.5, kernel)
            if rank and index % 2 == 0:
                down, up = normal(generator, rank, columns) / columns**0.5, normal(generator, rows, rank) / 4
                parts[part] = LowRankLinear(parts[part], packed(down, kernel), packed(up, kernel))
        first, second = (1 + normal(generator, shape.hidden) / 10 for _ in range(2))
        bias = normal(generator, shape.part_size("qkv")[0]) / 10
        layers.append(LayerWeights(first, second, bias, *(parts[part] for part in PARTS)))
    return Stack(tuple(layers), 1 + normal(generator, shape.hidden) / 10)


class Passes:
    """Passes over one cache, by torch's layers or by the kernel's."""

    def __init__(self, stack: Stack, shape: Qwen2Shape, *, by_kernel: bool) -> None:
        self._stack, self._shape, self._by_kernel = stack, shape, by_kernel
        self._rotary = RotaryTable(shape.head_dim, shape.rope_theta, WINDOW, torch.device("cpu"))
        size = (shape.layers, shape.kv_heads, shape.head_dim, WINDOW, torch.float32, torch.device("cpu"))
        self.cache = KeyValueCache(CacheShape(*size))

    def run(
        self, hidden: torch.Tensor, *, visible: torch.Tensor | None = None, wanted: int | None = None
    ) -> torch.Tensor:
        count, start = hidden.shape[0], self.cache.length
        self.cache.reserve(count)
        seen = torch.zeros(count, self.cache.padded(count), dtype=torch.bool)
        seen[:, :start] = True
        seen[:, start : start + count] = torch.ones(count, count).tril().bool() if visible is None else visible
        bias = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
        plan = RowPlan(torch.arange(start, start + count), bias)
        wanted = count if wanted is None else wanted
        if self._by_kernel:
            result = PackedStack(self._stack, self._shape).run(self._rotary, hidden, plan, self.cache, wanted)
        else:
            result = run_stack(self._stack, self._shape, self._rotary, hidden, plan, self.cache, wanted)
        self.cache.advance(count)
        return result

    @property
    def resident(self) -> torch.Tensor:
        return self.cache.storage[:, :, :, : self.cache.length]


def rows_of(shape: Qwen2Shape, count: int, seed: int = 7) -> torch.Tensor:
    return normal(torch.Generator().manual_seed(seed), count, shape.hidden)


@every_kernel
@every_shape
@pytest.mark.parametrize("rank", [0, 5, 8])
def test_the_kernel_s_layers_are_near_torch_s(kernel: Kernel, shape: Qwen2Shape, rank: int) -> None:
    stack = random_stack(shape, kernel, rank=rank)
    own, torch_s = (Passes(stack, shape, by_kernel=by_kernel) for by_kernel in (True, False))
    for count in (1, 130, 3, 9, 64):
        hidden = rows_of(shape, count, seed=count)
        result, expected = own.run(hidden), torch_s.run(hidden)
        # A last bit of an input can move it over an edge of its quantisation, by 1 part in 127; more would be wrong.
        assert float((result - expected).norm() / expected.norm()) < 0.01, f"{count} rows"
    assert float((own.resident - torch_s.resident).norm() / torch_s.resident.norm()) < 0.01


@every_kernel
@every_shape
@pytest.mark.parametrize("rank", [0, 5])
def test_a_row_is_bit_identical_alone_and_in_any_batch(kernel: Kernel, shape: Qwen2Shape, rank: int) -> None:
    stack = random_stack(shape, kernel, rank=rank)
    hidden = rows_of(shape, 43)
    singly = Passes(stack, shape, by_kernel=True)
    expected = torch.cat([singly.run(row[None]) for row in hidden])
    for pieces in ([43], [1, 42], [8, 8, 27], [20, 5, 9, 9]):
        together = Passes(stack, shape, by_kernel=True)
        assert torch.equal(torch.cat([together.run(piece) for piece in torch.split(hidden, pieces)]), expected), pieces
        assert torch.equal(together.resident, singly.resident)


@every_shape
def test_a_row_sees_what_its_mask_shows(shape: Qwen2Shape) -> None:
    stack = random_stack(shape, KERNELS[0])
    visible = torch.eye(6, dtype=torch.bool)
    visible[:, 0] = True
    visible[5, 3] = True
    hidden = rows_of(shape, 20), rows_of(shape, 6, seed=8)
    own, torch_s = (Passes(stack, shape, by_kernel=by_kernel) for by_kernel in (True, False))
    for passes in (own, torch_s):
        passes.run(hidden[0])
    result, expected = own.run(hidden[1], visible=visible), torch_s.run(hidden[1], visible=visible)
    assert float((result - expected).norm() / expected.norm()) < 0.01
    unseen = Passes(stack, shape, by_kernel=True)
    unseen.run(hidden[0])
    changed = hidden[1].clone()
    changed[4] += 100
    again = unseen.run(changed, visible=visible)
    assert torch.equal(again[[0, 1, 2, 3, 5]], result[[0, 1, 2, 3, 5]])
    assert not torch.equal(again[4], result[4])


@every_shape
@pytest.mark.parametrize("wanted", [0, 1, 9])
def test_only_the_wanted_rows_come_back_and_all_are_resident(shape: Qwen2Shape, wanted: int) -> None:
    stack = random_stack(shape, KERNELS[0], rank=5)
    hidden = rows_of(shape, 17)
    whole, part = (Passes(stack, shape, by_kernel=True) for _ in range(2))
    expected = whole.run(hidden)
    assert torch.equal(part.run(hidden, wanted=wanted), expected[:wanted])
    assert torch.equal(part.resident, whole.resident)
    following = rows_of(shape, 2, seed=9)
    assert torch.equal(part.run(following), whole.run(following))


def test_the_number_of_threads_changes_nothing() -> None:
    shape = SHAPES["one head"]
    stack, hidden = random_stack(shape, KERNELS[0]), rows_of(shape, 70)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 8):
            torch.set_num_threads(threads)
            passes = Passes(stack, shape, by_kernel=True)
            results.append(torch.cat([passes.run(hidden[:69]), passes.run(hidden[69:])]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results[1:])


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    shape = SHAPES["wide"]
    stack = random_stack(shape, KERNELS[0])
    loud = replace(stack, layers=tuple(replace(layer, qkv_bias=layer.qkv_bias * 500) for layer in stack.layers))
    own, torch_s = (Passes(loud, shape, by_kernel=by_kernel) for by_kernel in (True, False))
    hidden = rows_of(shape, 40) * 1e3
    result, expected = own.run(hidden), torch_s.run(hidden)
    assert bool(result.isfinite().all())
    assert float((result - expected).norm() / expected.norm()) < 0.02


def test_what_the_kernel_cannot_run_is_left_to_torch() -> None:
    shape, kernel = SHAPES["wide"], KERNELS[0]
    stack = random_stack(shape, kernel)
    assert kernel_of(stack, shape) == kernel
    dense = replace(stack.layers[1], down=FloatLinear(torch.zeros(shape.part_size("down"))))
    mixed = replace(stack, layers=(stack.layers[0], dense, stack.layers[2]))
    assert kernel_of(mixed, shape) is None
    patched = replace(stack.layers[1], down=LowRankLinear(stack.layers[1].down, dense.down, dense.down))
    assert kernel_of(replace(stack, layers=(patched,)), shape) is None
    for change in ({"head_dim": 24}, {"head_dim": 8}, {"hidden": 60}, {"intermediate": 100}):
        assert kernel_of(stack, replace(shape, **change)) is None
    with pytest.raises(ValueError, match="not every matrix"):
        PackedStack(mixed, shape)
