"""Linear layers behind one small interface, and the process-wide settings of torch they depend on.

The only file that touches torch's deprecated quantised tensors. It must not know which model a layer belongs to.

Three ways to one result: the project's own kernel (`packed`) where it was built, else fbgemm, else float32.

The int8 scheme: weights are symmetric with one scale per output channel and stay within 7 bits; each row of the
input is divided by its own absolute maximum and quantised to 8 bits. AVX2 adds pairs of products in 16 bits, and
2 * 255 * 63 still fits. The spare bit belongs to the input: measured on the default model, 7-bit inputs with 8-bit
weights lose 3 to 4 % of nll, this way round 1 to 2 %. The sums are integers, so a row's result depends on nothing
but that row: neither on its neighbours nor on their number.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch

from engine.runtime.environment import prepare_environment
from engine.runtime.packed import INPUTS, Kernel, PackedInt8Linear, find_kernel, pack, unpack

_ENGINE = "fbgemm"
_INPUT_SCALE = 1.0 / 127.5
_INPUT_ZERO = 128
_WEIGHT_LEVELS = 63
_SMALLEST_ROW_MAXIMUM = 1e-9
_PANEL_ROWS = 10240
"""A vocabulary-sized matrix is packed in panels: fbgemm packs all of it at once several times slower."""

_DEPRECATED = r"torch\.quantize_per_tensor, .* are deprecated"

Int8Matrix = tuple[torch.Tensor, torch.Tensor]
"""int8 [out, in] and float32 scales [out]."""


class Linear(Protocol):
    """y = x W^T without a bias. x: [n, in] float32; the result: [n, out] float32 on the device of the weights."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...


class FloatLinear:
    """A dense layer of any floating dtype on any device. weight: [out, in]."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x.to(self._weight.dtype), self._weight).float()


class LowRankLinear:
    """A layer with a low-rank patch, unfolded: y = base(x) + B (A x). down (A): [rank, in], up (B): [out, rank]."""

    def __init__(self, base: Linear, down: Linear, up: Linear) -> None:
        self.base = base
        self.down = down
        self.up = up

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x).add_(self.up(self.down(x)))


class Int8Linear:
    """Per-channel 7-bit weights, per-row 8-bit activations, through fbgemm on an x86 CPU.

    panels: what `linear_prepack` made of consecutive runs of the [rows, in] weights, all runs but the last
    `_PANEL_ROWS` long. A row's result is bit-identical whatever the other rows of the batch are.
    """

    def __init__(self, panels: Sequence[Any], rows: int) -> None:
        self._panels = panels
        self._rows = rows

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        row_maximum = x.abs().amax(-1, keepdim=True).clamp_min_(_SMALLEST_ROW_MAXIMUM)
        relative = x / row_maximum
        if len(self._panels) == 1:
            return _int8_product(relative, self._panels[0]).mul_(row_maximum)
        result = x.new_empty(x.shape[0], self._rows)
        for panel, target in zip(self._panels, torch.split(result, _PANEL_ROWS, dim=1), strict=True):
            torch.mul(_int8_product(relative, panel), row_maximum, out=target)
        return result


def int8_is_supported() -> bool:
    """Whether there are int8 kernels: our own, or those of torch (x86 builds have them, ARM builds do not)."""
    return find_kernel() is not None or _has_fbgemm()


def int8_linear(weight: torch.Tensor, scale: torch.Tensor) -> Linear:
    """The layer whose dense weight is `weight * scale[:, None]`; weight: [out, in] int8, scale: [out] float32."""
    return int8_linears([lambda: (weight, scale)])[0]


def packed_linear(
    packed: torch.Tensor,
    scale: torch.Tensor,
    *,
    columns: int | None = None,
    correction: torch.Tensor | None = None,
) -> Linear:
    """`int8_linear` of weights that are packed already, which the own kernel reads where they lie.

    packed: [ceil(out / 8), ceil(in / 4), 8, 4] int8 as `packed.pack` makes it; scale: [out] float32; columns: the
    inputs, where they are no multiple of 4; correction: `packed.corrections`, where known. Without the kernel the
    weights are unpacked and packed again for fbgemm. Raises ValueError for sizes that do not fit each other.
    """
    kernel = find_kernel()
    if kernel is not None:
        return PackedInt8Linear(packed, scale, kernel, columns=columns, correction=correction)
    weight = unpack(packed, scale.shape[0])[:, : packed.shape[1] * INPUTS if columns is None else columns]
    return int8_linear(weight, scale)


def int8_linears(
    stored: Sequence[Callable[[], Int8Matrix]], *, packed: Callable[[int], None] | None = None
) -> list[Linear]:
    """The fastest layers this machine has for int8 weights; without the kernels, the same weights as float32.

    stored: each gives (weight, scale) as for `int8_linear` when its turn comes, on one of torch's number of threads,
    because packing a matrix is slow, single-threaded and outside the interpreter's lock. `packed` is told the count.
    """
    make = _maker()
    layers: list[Linear] = []
    with _quantised_engine(), ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for layer in pool.map(lambda load: make(*load()), stored):
            layers.append(layer)
            if packed is not None:
                packed(len(layers))
    return layers


def quantise_per_channel(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round [out, in] float to -63…63: (int8 [out, in], float32 scale [out]); an all-zero row is exact."""
    scale = weight.abs().amax(1).float() / _WEIGHT_LEVELS
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    quantised = (weight / scale[:, None]).round_().clamp_(-_WEIGHT_LEVELS, _WEIGHT_LEVELS).to(torch.int8)
    return quantised, scale


def configure_runtime(threads: int | None) -> int:
    """Set torch's thread count (None keeps torch's own choice) and flush denormals; returns the thread count.

    Denormals are flushed for the calling thread, so call this on the thread that will run the model. Also prepares
    the environment as far as that still has an effect: see `environment.prepare_environment`.
    """
    prepare_environment(os.environ)
    if threads is not None:
        torch.set_num_threads(max(1, threads))
    torch.set_flush_denormal(True)
    return torch.get_num_threads()


def _int8_product(relative: torch.Tensor, panel: Any) -> torch.Tensor:
    product: torch.Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
        relative, _INPUT_SCALE, _INPUT_ZERO, panel
    )
    return product


def _maker() -> Callable[[torch.Tensor, torch.Tensor], Linear]:
    kernel = find_kernel()
    if kernel is not None:
        return partial(_make_packed, kernel)
    return _make_fbgemm if _has_fbgemm() else _make_float


def _make_packed(kernel: Kernel, weight: torch.Tensor, scale: torch.Tensor) -> Linear:
    return PackedInt8Linear(pack(weight), scale, kernel, columns=weight.shape[1])


def _has_fbgemm() -> bool:
    return _ENGINE in torch.backends.quantized.supported_engines


def _make_fbgemm(weight: torch.Tensor, scale: torch.Tensor) -> Linear:
    pieces = zip(torch.split(weight, _PANEL_ROWS), torch.split(scale, _PANEL_ROWS), strict=True)
    return Int8Linear([_panel(rows, row_scale) for rows, row_scale in pieces], weight.shape[0])


def _panel(weight: torch.Tensor, scale: torch.Tensor) -> Any:
    zero_points = torch.zeros(weight.shape[0], dtype=torch.long)
    quantised = torch._make_per_channel_quantized_tensor(weight, scale.double(), zero_points, 0)
    return torch.ops.quantized.linear_prepack(quantised, None)


def _make_float(weight: torch.Tensor, scale: torch.Tensor) -> Linear:
    return FloatLinear(weight.float() * scale[:, None])


@contextmanager
def _quantised_engine() -> Iterator[None]:
    # "x86" would pick oneDNN on some CPUs, which lacks the operator used here.
    previous = torch.backends.quantized.engine
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_DEPRECATED)
        if _has_fbgemm():
            torch.backends.quantized.engine = _ENGINE
        try:
            yield
        finally:
            torch.backends.quantized.engine = previous
