"""Linear layers behind one small interface, and the process-wide settings of torch they depend on.

The only file that touches torch's deprecated quantised tensors. It must not know which model a layer belongs to.

The int8 scheme: weights are symmetric int8 with one scale per output channel; each row of the input is divided by
its own absolute maximum and quantised to 7 bits (8 bits overflow the 16-bit intermediate sums of AVX2). The sums
are integers, so a row's result depends on nothing but that row: neither on its neighbours nor on their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

_ENGINE = "fbgemm"
_INPUT_SCALE = 1.0 / 63.5
_INPUT_ZERO = 64
_SMALLEST_ROW_MAXIMUM = 1e-9


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

    def __init__(self, base: Linear, down: torch.Tensor, up: torch.Tensor) -> None:
        self._base = base
        self._down = FloatLinear(down)
        self._up = FloatLinear(up)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._base(x) + self._up(self._down(x))


class Int8Linear:
    """Per-channel int8 weights, per-row 7-bit activations, through fbgemm on an x86 CPU.

    weight: [out, in] int8; scale: [out] float32, so that the dense weight is `weight * scale[:, None]`.
    A row's result is bit-identical whatever the other rows of the batch are.
    """

    def __init__(self, weight: torch.Tensor, scale: torch.Tensor) -> None:
        zero_points = torch.zeros(weight.shape[0], dtype=torch.long)
        with _quantised_tensors_silenced(), _quantised_engine():
            quantised = torch._make_per_channel_quantized_tensor(weight, scale.double(), zero_points, 0)
            self._packed: Any = torch.ops.quantized.linear_prepack(quantised, None)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        row_maximum = x.abs().amax(-1, keepdim=True).clamp_min_(_SMALLEST_ROW_MAXIMUM)
        result: torch.Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / row_maximum, _INPUT_SCALE, _INPUT_ZERO, self._packed
        )
        return result.mul_(row_maximum)


def int8_is_supported() -> bool:
    """Whether this torch build has the int8 kernels (x86 builds do, ARM builds do not)."""
    return _ENGINE in torch.backends.quantized.supported_engines


def int8_linear(weight: torch.Tensor, scale: torch.Tensor) -> Linear:
    """The fastest layer this machine has for int8 weights; without the kernels, the same weights as float32."""
    if int8_is_supported():
        return Int8Linear(weight, scale)
    return FloatLinear(weight.float() * scale[:, None])


def quantise_per_channel(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round [out, in] float to symmetric int8: (int8 [out, in], float32 scale [out]); an all-zero row is exact."""
    scale = weight.abs().amax(1).float() / 127
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    quantised = (weight / scale[:, None]).round_().clamp_(-127, 127).to(torch.int8)
    return quantised, scale


def configure_runtime(threads: int | None) -> int:
    """Set torch's thread count (None keeps torch's own choice) and flush denormals; returns the thread count.

    Denormals are flushed for the calling thread, so call this on the thread that will run the model.
    """
    if threads is not None:
        torch.set_num_threads(max(1, threads))
    torch.set_flush_denormal(True)
    return torch.get_num_threads()


@contextmanager
def _quantised_tensors_silenced() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"torch\.quantize_per_tensor, .* are deprecated")
        yield


@contextmanager
def _quantised_engine() -> Iterator[None]:
    # "x86" would pick oneDNN on some CPUs, which lacks the operator used here.
    previous = torch.backends.quantized.engine
    torch.backends.quantized.engine = _ENGINE
    try:
        yield
    finally:
        torch.backends.quantized.engine = previous
