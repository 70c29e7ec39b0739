"""What this machine can do at most, measured: reading memory, and multiplying int8 matrices. A process of its own.

Answers {"bandwidth_gb_s", "gemm_gop_s", "gemm"}. Bandwidth is the best of reading half a gigabyte that is in no cache.
The int8 rate is the best that any int8 product of this installation reaches on any of a few shapes and heights, in 10⁹
multiplications and additions a second; which one it was is told. It is a measured rate, not the processor's arithmetic
limit, which nothing here comes near.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from time import perf_counter

from engine.runtime.environment import prepare_environment
from tests.bench.beside.pipe import Answer, serve

BUFFER_BYTES = 512 << 20
REPEATS = 7
# The model's two largest matrices and one that is square, [out, in]; and how many rows are multiplied at once.
SHAPES = ((9728, 896), (896, 4864), (4096, 4096))
HEIGHTS = (128, 512)


def fastest(act: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of some repeats, after one to warm up."""
    act()
    times = []
    for _ in range(repeats):
        began = perf_counter()
        act()
        times.append(perf_counter() - began)
    return min(times)


def bandwidth_gb_s() -> float:
    """Gigabytes a second that all threads read together: a sum, whose arithmetic is far cheaper than its reading."""
    import torch

    buffer = torch.ones(BUFFER_BYTES // 4)
    return BUFFER_BYTES / fastest(buffer.sum) / 1e9


def int8_products(out: int, inner: int, rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every way this installation has to multiply `rows` rows by an int8 matrix."""
    import torch

    from engine.runtime.linear import int8_linear

    weight = torch.randint(-63, 64, (out, inner), dtype=torch.int8)
    layer, x = int8_linear(weight, torch.ones(out)), torch.randn(rows, inner)
    yield "the engine's int8 layer", lambda: layer(x)


def gemm_gop_s() -> tuple[float, str]:
    """The best rate and what reached it."""
    best, name = 0.0, ""
    for out, inner in SHAPES:
        for rows in HEIGHTS:
            for product, act in int8_products(out, inner, rows):
                rate = 2 * out * inner * rows / fastest(act, 3) / 1e9
                if rate > best:
                    best, name = rate, f"{product}, {rows} x {inner} x {out}"
    return best, name


def main() -> None:
    """Measure, when asked, with as many threads as the command line says."""
    from engine.runtime.linear import configure_runtime

    configure_runtime(int(sys.argv[1]))

    def answer(question: Answer) -> Answer:
        if question["op"] == "ready":
            return {}
        bandwidth = bandwidth_gb_s()
        rate, name = gemm_gop_s()
        return {"bandwidth_gb_s": round(bandwidth, 2), "gemm_gop_s": round(rate, 1), "gemm": name}

    serve(answer)


if __name__ == "__main__":
    prepare_environment(os.environ)  # before torch is imported: its threads read it once
    main()
