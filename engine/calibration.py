"""What a forward pass costs on this machine, by its number of rows: measured once per model, kept in a small file.

The router decides by these numbers, so they are measured on the loaded weights and not guessed from the processor.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch

from engine.models.base import CanvasRows, Denoiser

ROWS = (1, 4, 8, 16, 32, 64)
CONTEXT_TOKENS = 256
REPEATS = 3
ForwardCosts = tuple[tuple[int, float], ...]


def forward_costs(model: Denoiser, file: Path, threads: int, clock: Callable[[], float]) -> ForwardCosts:
    """(rows, milliseconds) pairs: from `file` when it is for this machine and thread count, else measured and kept.

    Costs taken while something else had the cores are used once and not kept, and the next start measures again. A
    file that cannot be read or written costs only that time too.
    """
    machine = _machine(model, threads)
    known = _read(file, machine)
    if known:
        return known
    costs = measure(model, clock)
    if not is_plausible(costs):
        return costs
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}")
        partial.write_text(json.dumps({"machine": machine, "forward_ms": costs}), encoding="utf-8")
        partial.replace(file)
    except OSError:
        return costs
    return costs


def is_plausible(costs: ForwardCosts) -> bool:
    """Whether wider passes cost more, as they do on a machine that is left alone; small inversions are noise."""
    return all(wide >= 0.8 * narrow for (_, narrow), (_, wide) in pairwise(costs))


def measure(model: Denoiser, clock: Callable[[], float]) -> ForwardCosts:
    """Time causal passes of each width on a short context, in ms; the least of a few repeats, after one to warm up."""
    facts = model.facts
    length = min(CONTEXT_TOKENS, facts.window_tokens // 4)
    ids = [index % facts.special.fim_prefix for index in range(length)]
    context = model.context_for(ids)
    try:
        model.encode(context, ids[context.length :])
        costs = []
        for rows in (count for count in ROWS if length + count <= facts.window_tokens):
            canvas = CanvasRows(torch.arange(rows), torch.arange(length, length + rows), None, adapted=True)
            times = []
            for _ in range(REPEATS + 1):
                began = clock()
                model.step(context, canvas)
                times.append((clock() - began) * 1000)
                context.truncate(length)
            costs.append((rows, round(min(times[1:]), 3)))
        return tuple(costs)
    finally:
        model.release(context)


def _machine(model: Denoiser, threads: int) -> str:
    facts = model.facts
    parts = (platform.machine(), platform.node(), str(os.cpu_count()), str(threads), torch.__version__)
    return "|".join((*parts, facts.name, facts.device, facts.precision, facts.adapter))


def _read(file: Path, machine: str) -> ForwardCosts:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["machine"] != machine:
            return ()
        return tuple((int(rows), float(cost)) for rows, cost in stored["forward_ms"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()
