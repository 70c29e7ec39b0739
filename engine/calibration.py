"""What a forward pass costs on this machine, by its number of rows: measured on the loaded weights, never guessed.

The router decides by these numbers, so they must say the same twice. The widths are measured in turn, round after
round, so that a machine that slows down slows all of them; of each width the least time counts, and a width is done
when its two least times agree.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import pairwise

import torch

from engine.models.base import CanvasRows, Context, Denoiser

ROWS = (1, 4, 8, 16, 32, 64, 96)
CONTEXT_TOKENS = 256
FEWEST_ROUNDS, MOST_ROUNDS = 2, 6
AGREEMENT = 1.05
"""By how much the second least time may exceed the least one."""
ForwardCosts = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """forward_ms: (rows, milliseconds) by rows. steady: every width was measured the same twice, and wider ones cost
    more, as they do on a machine that is left alone."""

    forward_ms: ForwardCosts
    steady: bool


def measure(model: Denoiser, clock: Callable[[], float]) -> Measured:
    """Run `measuring` to its end."""
    passes = measuring(model, clock)
    while True:
        try:
            next(passes)
        except StopIteration as finished:
            measured: Measured = finished.value
            return measured


def measuring(model: Denoiser, clock: Callable[[], float]) -> Generator[None, None, Measured]:
    """Time causal passes of each width on a short context, one per step; closing it gives the context back.

    clock: seconds. Widths that do not fit the model's window are left out.
    """
    facts = model.facts
    length = min(CONTEXT_TOKENS, facts.window_tokens // 4)
    ids = [index % facts.special.fim_prefix for index in range(length)]
    context = model.context_for(ids)
    try:
        model.encode(context, ids[context.length :])
        yield
        widths = [rows for rows in ROWS if length + rows <= facts.window_tokens]
        times: dict[int, list[float]] = {rows: [] for rows in widths}
        for number in range(MOST_ROUNDS):
            # Forwards and backwards, so that no width is always measured behind the widest.
            for rows in widths if number % 2 else reversed(widths):
                if number < FEWEST_ROUNDS or not agrees(times[rows]):
                    times[rows].append(_pass_ms(model, context, rows, clock))
                    yield
        costs = tuple((rows, round(min(times[rows]), 3)) for rows in widths)
        return Measured(costs, is_plausible(costs) and all(agrees(times[rows]) for rows in widths))
    finally:
        model.release(context)


def agrees(times: list[float]) -> bool:
    """Whether the least of some times was measured twice."""
    least, second = sorted(times)[:2] if len(times) > 1 else (0.0, 1.0)
    return second <= AGREEMENT * least


def is_plausible(costs: ForwardCosts) -> bool:
    """Whether wider passes cost more, as they do on a machine that is left alone; small inversions are noise."""
    return all(wide >= 0.8 * narrow for (_, narrow), (_, wide) in pairwise(costs))


def _pass_ms(model: Denoiser, context: Context, rows: int, clock: Callable[[], float]) -> float:
    length = context.length
    canvas = CanvasRows(torch.arange(rows), torch.arange(length, length + rows), None, adapted=True)
    began = clock()
    # Whoever uses a pass reads its logits: on a GPU that waits for them.
    model.step(context, canvas)[:, :1].tolist()
    passed = (clock() - began) * 1000
    context.truncate(length)
    return passed
