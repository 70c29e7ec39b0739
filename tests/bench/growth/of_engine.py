"""How the engine's cost grows with what is resident and with what is to be written, on the loaded model alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from tests.bench.beside.own_worker import OwnEngine, loaded
from tests.bench.beside.texts import cases
from tests.bench.growth.point import Point, point_of, sizes

if TYPE_CHECKING:
    from engine.models.base import Context, Denoiser

CONTEXT_TOKENS = (64, 256, 1024, 2048, 3584)
GAP_TOKENS = (1, 4, 16, 64, 192)
REPEATS = 5
ROWS = (1, 16)


def curves(model: str, threads: int, *, quick: bool = False) -> Iterator[Point]:
    """Both curves. Loads the model."""
    engine = loaded(model, threads)
    yield from context_curve(engine.model, sizes(CONTEXT_TOKENS, quick=quick))
    yield from gap_curve(engine, sizes(GAP_TOKENS, quick=quick))


def context_curve(model: Denoiser, lengths: Sequence[int]) -> Iterator[Point]:
    """Encoding a context of so many tokens, once; and passes of one and of sixteen rows on top of it."""
    import torch

    from engine.models.base import CanvasRows

    for length in lengths:
        # Ids that no other length begins with, so that nothing resident helps.
        ids = [(length + 7 * place) % model.facts.special.fim_prefix for place in range(length)]
        context = model.context_for(ids)
        try:
            began = perf_counter()
            model.encode(context, ids[context.length :])
            encoded = perf_counter() - began
            yield point_of("encoding, by context tokens", length, [encoded], tokens_per_s=length / encoded)
            for rows in ROWS:
                canvas = CanvasRows(torch.arange(rows), torch.arange(length, length + rows), None, adapted=True)
                times = [_pass_seconds(model, context, canvas, length) for _ in range(REPEATS)]
                yield point_of(f"a pass of {rows}, by context tokens", length, times)
        finally:
            model.release(context)


def _pass_seconds(model: Denoiser, context: Context, canvas: object, length: int) -> float:
    from engine.models.base import CanvasRows

    assert isinstance(canvas, CanvasRows)
    began = perf_counter()
    model.step(context, canvas)
    seconds = perf_counter() - began
    context.truncate(length)
    return seconds


def gap_curve(engine: OwnEngine, lengths: Sequence[int]) -> Iterator[Point]:
    """A text of at most so many tokens behind a prompt that is resident: a function told back with one small edit."""
    from dataclasses import replace

    request = cases("rewrite")[0].requests[0]
    engine.ask(replace(request, max_tokens=1), drafts=True)
    for tokens in lengths:
        for curve, drafts in (("drafted gap, by tokens", True), ("causal gap, by tokens", False)):
            answers = [engine.ask(replace(request, max_tokens=tokens), drafts=drafts) for _ in range(3)]
            times = [(answer["ms"] - answer["ms_encode"]) / 1000 for answer in answers]
            yield point_of(curve, tokens, times, passes=answers[0]["passes"])
