"""Which precision of the frozen weights is fastest on this CPU: measured, because torch does not tell.

torch's int8 product has a fast kernel only where the processor has the instructions for it (AVX-512 VNNI and the like).
Elsewhere a plain loop stands in, which took 24 times as long as float32 on an AVX2 machine.
"""

from __future__ import annotations

from time import perf_counter

import torch

from engine.runtime.packed import find_kernel
from engine.training.frozen_linear import frozen_linear

_ROWS, _WIDE, _NARROW, _ROUNDS = 64, 1024, 512, 3
CANDIDATES = ("packed", "int8", "fp32")
"""The first is the engine's own kernel, where it was built."""


def fastest_on_cpu() -> str:
    """The candidate whose product takes least time, forwards and backwards, on rows and weights of a usual size."""
    return min((each for each in CANDIDATES if each != "packed" or find_kernel() is not None), key=seconds_of)


def seconds_of(precision: str) -> float:
    """Wall time of one product with its gradient, in seconds: the best of a few, after one that warms up."""
    generator = torch.Generator().manual_seed(0)
    layer = frozen_linear(torch.randn(_WIDE, _NARROW, generator=generator), precision)
    rows = torch.randn(_ROWS, _NARROW, generator=generator, requires_grad=True)
    times = []
    for _ in range(1 + _ROUNDS):
        began = perf_counter()
        layer(rows).sum().backward()  # type: ignore[no-untyped-call]
        times.append(perf_counter() - began)
    return min(times[1:])
