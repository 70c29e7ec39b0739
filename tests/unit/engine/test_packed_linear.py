"""int8 layers on the own kernel: exact sums whatever the size, the rows beside it, the threads and the instructions."""

from __future__ import annotations

import os
import platform
import sys
import threading
from dataclasses import replace

import pytest
import torch

from engine.runtime import extension
from engine.runtime.linear import FloatLinear, int8_is_supported, int8_linear, packed_linear, quantise_per_channel
from engine.runtime.packed import Kernel, PackedInt8Linear, corrections, find_kernel, find_kernels, pack, unpack

KERNELS = find_kernels()
SIZES = [(8, 4), (13, 7), (1, 1), (24, 30), (48, 64), (9, 4864), (896, 896), (3000, 36)]
ROWS = [1, 2, 3, 5, 8, 9, 15, 17, 24, 33, 64, 131]

needs_kernel = pytest.mark.skipif(not KERNELS, reason="the kernel was not built, or this processor cannot run it")
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


@pytest.fixture
def two_threads() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "engine.runtime._int8", None)


def random_int8(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-63, 64, (rows, columns), dtype=torch.int8, generator=generator)


def random_rows(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Rows of very different size, the largest value of every second one negative."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator) * 10 ** torch.randn(rows, 1, generator=generator)
    x[::2, 0] = -2 * x[::2].abs().amax(-1)
    return x


def scales(rows: int) -> torch.Tensor:
    return torch.linspace(0.01, 1.5, rows)


def reference(weight: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The scheme in plain torch: sums in int32, then the same three roundings in float32."""
    step = torch.tensor(1 / 127.5, dtype=torch.float32)
    maximum = x.abs().amax(-1, keepdim=True).clamp_min(1e-9)
    exact = (x / maximum).double() * (1 / step).double() + 128
    quantised = exact.float().round().clamp(0, 255).to(torch.int32) - 128
    sums = quantised @ weight.to(torch.int32).T
    return sums.float() * scale * (maximum * step)


@needs_kernel
@every_kernel
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_sums_equal_those_of_torch_in_int32(kernel: Kernel, size: tuple[int, int]) -> None:
    weight, scale = random_int8(*size), scales(size[0])
    layer = PackedInt8Linear(pack(weight), scale, kernel, columns=size[1])
    for rows in ROWS:
        x = random_rows(rows, size[1], seed=rows)
        assert torch.equal(layer(x), reference(weight, scale, x)), f"{rows} rows"


@needs_kernel
@pytest.mark.skipif("fbgemm" not in torch.backends.quantized.supported_engines, reason="a build without fbgemm")
@pytest.mark.parametrize("size", [(48, 64), (896, 896), (40, 4864)])
def test_the_kernel_and_torch_get_the_same_integers(size: tuple[int, int], no_kernel: None) -> None:
    weight, x = random_int8(*size), random_rows(33, size[1])
    kernel, scale = KERNELS[0], scales(size[0])
    own, torch_s = PackedInt8Linear(pack(weight), scale, kernel), int8_linear(weight, scale)
    # One step of one input would show as 1 / 127.5 of a row's largest weight: far more than the last bits of a float.
    torch.testing.assert_close(own(x), torch_s(x), rtol=1e-6, atol=1e-5)


@needs_kernel
@every_kernel
@pytest.mark.parametrize("rows", ROWS)
def test_a_row_is_bit_identical_alone_and_in_any_batch(kernel: Kernel, rows: int) -> None:
    layer = PackedInt8Linear(pack(random_int8(200, 100)), scales(200), kernel)
    x = random_rows(rows, 100, seed=rows)
    together = layer(x)
    assert torch.equal(together, torch.cat([layer(x[row : row + 1]) for row in range(rows)]))
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(rows))
    assert torch.equal(together[order], layer(x[order]))


@needs_kernel
@every_kernel
def test_the_largest_sums_neither_overflow_nor_saturate(kernel: Kernel) -> None:
    weight = torch.full((16, 4096), 63, dtype=torch.int8)
    weight[::2] = -63
    x = torch.ones(3, 4096)
    x[1], x[2, ::2] = -1, -1
    scale = torch.ones(16)
    assert torch.equal(PackedInt8Linear(pack(weight), scale, kernel)(x), reference(weight, scale, x))


@needs_kernel
@every_kernel
@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("column", [0, 9, 29])
def test_a_row_that_is_not_finite_gives_nan_and_leaves_the_others(kernel: Kernel, broken: float, column: int) -> None:
    weight, scale = random_int8(24, 30), scales(24)
    layer = PackedInt8Linear(pack(weight), scale, kernel, columns=30)
    x = random_rows(11, 30)
    clean = layer(x)
    x[4, column] = broken
    result = layer(x)
    assert bool(result[4].isnan().all())
    others = [row for row in range(11) if row != 4]
    assert torch.equal(result[others], clean[others])


@needs_kernel
@every_kernel
def test_rows_of_zeros_give_zeros_and_no_rows_give_none(kernel: Kernel) -> None:
    layer = PackedInt8Linear(pack(random_int8(20, 16)), scales(20), kernel)
    x = random_rows(3, 16)
    x[1] = 0
    assert not layer(x)[1].any()
    assert layer(x)[[0, 2]].all()
    assert layer(x[:0]).shape == (0, 20)


@needs_kernel
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_number_of_threads_changes_nothing(two_threads: object, threads: int) -> None:
    layer = PackedInt8Linear(pack(random_int8(3000, 64)), scales(3000), KERNELS[0])
    x = random_rows(300, 64)
    expected = layer(x)
    torch.set_num_threads(threads)
    for _ in range(20):
        assert torch.equal(layer(x), expected)


@needs_kernel
def test_several_callers_at_once_get_their_own_results(two_threads: object) -> None:
    layer = PackedInt8Linear(pack(random_int8(1000, 64)), scales(1000), KERNELS[0])
    inputs = [random_rows(count, 64, seed=count) for count in (1, 9, 40, 130)]
    expected = [layer(x) for x in inputs]
    wrong: list[int] = []

    def call(number: int) -> None:
        wrong.extend(number for _ in range(50) if not torch.equal(layer(inputs[number]), expected[number]))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@needs_kernel
def test_products_of_changing_size_one_after_another_keep_apart(two_threads: object) -> None:
    # A helper that is done with one product must not take a chunk of the next one for one of the last.
    layers = [PackedInt8Linear(pack(random_int8(size, 8)), scales(size), KERNELS[0]) for size in (16, 128, 40, 1000)]
    x = random_rows(3, 8)
    expected = [layer(x) for layer in layers]
    for _ in range(1000):
        assert all(torch.equal(layer(x), right) for layer, right in zip(layers, expected, strict=True))


@needs_kernel
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_computes_too(two_threads: object) -> None:
    layer = PackedInt8Linear(pack(random_int8(2000, 64)), scales(2000), KERNELS[0])
    x = random_rows(1, 64)
    expected = layer(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(layer(x), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@needs_kernel
def test_rows_that_do_not_lie_together_are_read_rightly() -> None:
    layer = PackedInt8Linear(pack(random_int8(16, 32)), scales(16), KERNELS[0])
    wide = random_rows(6, 64)
    assert torch.equal(layer(wide[:, ::2]), layer(wide[:, ::2].clone()))
    assert torch.equal(layer(wide[::2, :32]), layer(wide[::2, :32].clone()))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_what_is_packed_can_be_unpacked(size: tuple[int, int]) -> None:
    weight = random_int8(*size)
    packed = pack(weight)
    assert packed.is_contiguous()
    assert torch.equal(unpack(packed, size[0])[:, : size[1]], weight)
    assert corrections(packed)[: size[0]].tolist() == (128 * weight.to(torch.int32).sum(1)).tolist()


def test_a_vector_holds_four_inputs_of_eight_channels() -> None:
    # The converted cache on disk has this layout: a change of it is a change of the cache's format.
    weight = torch.arange(16 * 8, dtype=torch.int8).view(16, 8)
    assert torch.equal(pack(weight), weight.view(2, 8, 2, 4).permute(0, 2, 1, 3))
    assert pack(weight).flatten()[:8].tolist() == [0, 1, 2, 3, 8, 9, 10, 11]


@pytest.mark.parametrize("kernel_there", [True, False])
@pytest.mark.parametrize("columns", [30, 32])
def test_packed_weights_serve_with_and_without_the_kernel(
    kernel_there: bool, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel_there:
        monkeypatch.setitem(sys.modules, "engine.runtime._int8", None)
    weight, scale = quantise_per_channel(random_int8(44, columns).float())
    x = random_rows(5, columns)
    layer = packed_linear(pack(weight), scale, columns=columns)
    assert isinstance(layer, PackedInt8Linear) == (kernel_there and bool(KERNELS))
    torch.testing.assert_close(layer(x), int8_linear(weight, scale)(x), rtol=1e-6, atol=1e-5)


def test_without_kernel_and_torch_s_own_the_weights_become_float(
    no_kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runtime.linear._has_fbgemm", lambda: False)
    assert not int8_is_supported()
    weight, scale = random_int8(12, 8), scales(12)
    x = random_rows(3, 8)
    layer = packed_linear(pack(weight), scale)
    assert isinstance(layer, FloatLinear)
    torch.testing.assert_close(layer(x), x @ (weight.float() * scale[:, None]).T)


def test_a_kernel_of_another_interface_or_for_another_processor_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stale:
        INTERFACE = extension.INTERFACE - 1

    class Alien:
        INTERFACE = extension.INTERFACE

        @staticmethod
        def kernels() -> tuple[str, ...]:
            return ()

    for module in (Stale, Alien):
        monkeypatch.setitem(sys.modules, "engine.runtime._int8", module)
        assert find_kernel() is None


@needs_kernel
def test_sizes_that_do_not_fit_are_refused() -> None:
    packed, kernel = pack(random_int8(16, 32)), KERNELS[0]
    with pytest.raises(ValueError, match="is not a packed matrix of 24 x 32"):
        PackedInt8Linear(packed, scales(24), kernel)
    with pytest.raises(ValueError, match="is not a packed matrix of 16 x 36"):
        PackedInt8Linear(packed, scales(16), kernel, columns=36)
    with pytest.raises(ValueError, match="8 corrections for 16 channels"):
        PackedInt8Linear(packed, scales(16), kernel, correction=torch.zeros(8, dtype=torch.int32))
    with pytest.raises(ValueError, match="int8 on the CPU expected"):
        PackedInt8Linear(packed.short(), scales(16), kernel)
    layer = PackedInt8Linear(packed, scales(16), kernel)
    with pytest.raises(ValueError, match="float32 expected"):
        layer(torch.zeros(2, 31))
    with pytest.raises(ValueError, match="float32 expected"):
        layer(torch.zeros(2, 32, dtype=torch.float64))
    with pytest.raises(ValueError, match="no kernel of that number"):
        PackedInt8Linear(packed, scales(16), replace(kernel, index=len(KERNELS)))(torch.zeros(1, 32))


@pytest.mark.skipif("LACUNA_CI" not in os.environ, reason="only the gate promises a compiler")
@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="no kernel for this machine")
def test_the_gate_has_built_the_kernel() -> None:
    assert find_kernel() is not None
