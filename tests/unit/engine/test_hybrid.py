"""The hybrid family on random weights: what rows see, which weights they use, what stays in the cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.models.base import CanvasRows
from engine.models.hybrid import HybridDenoiser
from engine.models.tiny import tiny_denoiser
from engine.protocol.errors import EngineError
from engine.runtime.cache import CachedContext

TEXT = list(b"def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total\n")
EXACTNESS = """
import torch
from engine.models.base import CanvasRows
from engine.models.tiny import tiny_denoiser
from engine.runtime.linear import configure_runtime
configure_runtime(1)
for precision in ("fp32", "int8"):
    model = tiny_denoiser(precision=precision, hidden=64)
    ids = list(range(200))
    context = model.context_for(ids)
    model.encode(context, ids[:120])
    rows = lambda a, b: CanvasRows(torch.tensor(ids[a:b]), torch.arange(a, b), None, True)
    wide = model.step(context, rows(120, 136))
    context.truncate(120)
    single = torch.cat([model.step(context, rows(at, at + 1)) for at in range(120, 136)])
    print(precision, torch.equal(wide, single), torch.allclose(wide, single, rtol=1e-4, atol=1e-4))
"""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small products are slower on several threads, above all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["fp32", "int8"])
def model(request: pytest.FixtureRequest) -> HybridDenoiser:
    return tiny_denoiser(precision=str(request.param))


def fresh(model: HybridDenoiser, ids: list[int]) -> CachedContext:
    """A context computed anew, whatever the pool holds, and given back, so that it may be reused."""
    context = model.context_for(ids)
    context.truncate(0)
    model.encode(context, ids)
    model.release(context)
    return context


def close(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal up to what rounding in another order may do to logits of size one."""
    return left.shape == right.shape and torch.allclose(left, right, rtol=1e-4, atol=1e-4)


def canvas(ids: list[int], start: int, *, adapted: bool = True, visible: torch.Tensor | None = None) -> CanvasRows:
    return CanvasRows(torch.tensor(ids), torch.arange(start, start + len(ids)), visible, adapted)


@pytest.mark.parametrize("adapted", [False, True])
def test_a_wide_causal_step_equals_single_steps(model: HybridDenoiser, adapted: bool) -> None:
    context = fresh(model, TEXT[:40])
    wide = model.step(context, canvas(TEXT[40:70], 40, adapted=adapted))
    context.truncate(40)
    single = [model.step(context, canvas([TEXT[at]], at, adapted=adapted)) for at in range(40, 70)]
    assert close(wide, torch.cat(single))


def test_with_reproducible_sums_a_wide_step_equals_single_steps_bit_for_bit() -> None:
    answer = subprocess.run([sys.executable, "-c", EXACTNESS], capture_output=True, text=True, check=True, timeout=120)
    # MKL promises the strict mode for Intel's own processors only.
    exact = str(torch.backends.mkl.is_available() and _is_intel())  # type: ignore[no-untyped-call]
    for line in answer.stdout.splitlines():
        _, equal, nearly_equal = line.split()
        assert nearly_equal == "True"
        assert equal == exact or exact == "False"
    assert len(answer.stdout.splitlines()) == 2


def _is_intel() -> bool:
    description = Path("/proc/cpuinfo")
    return description.exists() and "GenuineIntel" in description.read_text(encoding="utf-8")


def test_reused_rows_equal_a_fresh_computation(model: HybridDenoiser) -> None:
    first = fresh(model, TEXT)
    changed = TEXT[:60] + list(b"return None\n")
    context = model.context_for(changed)
    assert context is first
    assert context.length == 60
    model.encode(context, changed[60:])
    reused = model.step(context, canvas([65], len(changed)))
    anew = model.step(fresh(model, changed), canvas([65], len(changed)))
    assert close(reused, anew)


def test_encoding_in_pieces_equals_encoding_at_once(model: HybridDenoiser) -> None:
    ids = (TEXT * 4)[:300]
    whole = model.step(fresh(model, ids), canvas([65], 300))
    context = fresh(model, ids[:7])
    for start in range(7, 300, 53):
        model.encode(context, ids[start : min(start + 53, 300)])
    assert close(model.step(context, canvas([65], 300)), whole)


def test_truncated_rows_leave_no_trace(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:50])
    before = model.step(context, canvas(TEXT[50:54], 50))
    context.truncate(50)
    model.step(context, canvas(TEXT[10:40], 50))
    context.truncate(50)
    assert torch.equal(model.step(context, canvas(TEXT[50:54], 50)), before)


def test_rows_of_a_step_stay_and_are_seen(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:30])
    model.step(context, canvas(TEXT[30:35], 30, adapted=False))
    assert context.length == 35
    stayed = model.step(context, canvas([TEXT[35]], 35, adapted=False))
    anew = model.step(fresh(model, TEXT[:35]), canvas([TEXT[35]], 35, adapted=False))
    assert close(stayed, anew)


def test_rows_of_a_step_are_never_matched_as_a_prefix(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:30])
    model.step(context, canvas(TEXT[30:40], 30))
    model.encode(context, TEXT[40:50])
    model.release(context)
    assert model.context_for(TEXT).length == 30


def test_a_context_in_use_is_never_given_to_another(model: HybridDenoiser) -> None:
    first = model.context_for(TEXT)
    model.encode(first, TEXT)
    others = [model.context_for(TEXT) for _ in range(5)]
    assert len({id(context) for context in [first, *others]}) == 6
    assert [context.length for context in others] == [len(TEXT)] * 5


def test_an_explicit_causal_mask_is_the_default(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:20])
    implicit = model.step(context, canvas(TEXT[20:30], 20))
    context.truncate(20)
    explicit = model.step(context, canvas(TEXT[20:30], 20, visible=torch.ones(10, 10, dtype=torch.bool).tril()))
    assert torch.equal(implicit, explicit)


def test_a_row_sees_exactly_what_the_mask_says(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:20])
    visible = torch.eye(4, dtype=torch.bool)
    visible[0, 3] = True
    outputs = []
    for last in (65, 66):
        outputs.append(model.step(context, canvas([70, 71, 72, last], 20, visible=visible)))
        context.truncate(20)
    assert not torch.equal(outputs[0][0], outputs[1][0])
    assert close(outputs[0][1:3], outputs[1][1:3])
    alone = model.step(context, CanvasRows(torch.tensor([72]), torch.tensor([22]), None, adapted=True))
    assert close(outputs[0][2:3], alone)


def test_masks_are_embedded_as_the_adapter_says(model: HybridDenoiser) -> None:
    mask = model.facts.mask_id
    context = fresh(model, TEXT[:20])
    everything = torch.ones(3, 3, dtype=torch.bool)
    logits = model.step(context, canvas([mask, mask, mask], 20, visible=everything))
    assert logits.shape == (3, model.facts.vocab_size)
    assert bool(torch.isfinite(logits).all())
    assert not close(logits[0], logits[1])  # they stand at different positions
    context.truncate(20)
    assert not close(model.step(context, canvas([0, 0, 0], 20, visible=everything)), logits)


def test_the_adapter_changes_adapted_rows_only(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:20])
    plain = model.step(context, canvas(TEXT[20:24], 20, adapted=False))
    context.truncate(20)
    adapted = model.step(context, canvas(TEXT[20:24], 20, adapted=True))
    assert float((plain - adapted).abs().max()) > 0.1


def test_positions_are_absolute(model: HybridDenoiser) -> None:
    context = fresh(model, TEXT[:20])
    here = model.step(context, CanvasRows(torch.tensor([65]), torch.tensor([20]), None, adapted=True))
    context.truncate(20)
    there = model.step(context, CanvasRows(torch.tensor([65]), torch.tensor([25]), None, adapted=True))
    assert not close(here, there)


@pytest.mark.parametrize("wanted", [0, 1, 3, 99])
def test_only_the_wanted_logits_come_back_and_every_row_stays(model: HybridDenoiser, wanted: int) -> None:
    context = fresh(model, TEXT[:20])
    everything = model.step(context, canvas(TEXT[20:26], 20))
    context.truncate(20)
    ids, positions = torch.tensor(TEXT[20:26]), torch.arange(20, 26)
    some = model.step(context, CanvasRows(ids, positions, None, adapted=True, logit_rows=wanted))
    assert close(some, everything[:wanted])
    assert context.length == 26
    after = model.step(context, canvas([65], 26))
    context.truncate(20)
    model.step(context, canvas(TEXT[20:26], 20))
    assert close(model.step(context, canvas([65], 26)), after)


def test_the_window_is_kept_and_nothing_changes_beyond_it() -> None:
    model = tiny_denoiser(window_tokens=200)
    context = fresh(model, TEXT)
    kept = context.length
    with pytest.raises(EngineError) as failure:
        model.encode(context, TEXT * 3)
    assert failure.value.kind == "window_exceeded"
    assert context.length == kept
    model.encode(context, (TEXT * 3)[: 200 - kept])
    assert context.length == 200
    with pytest.raises(EngineError, match="201 tokens"):
        model.step(context, canvas([65], 200))
    assert context.length == 200


def test_a_position_past_the_window_is_refused() -> None:
    model = tiny_denoiser(window_tokens=128)
    context = fresh(model, TEXT[:10])
    with pytest.raises(EngineError) as failure:
        model.step(context, CanvasRows(torch.tensor([65]), torch.tensor([128]), None, adapted=True))
    assert failure.value.kind == "window_exceeded"


@pytest.mark.parametrize(
    ("ids", "positions", "visible"),
    [
        ([], [], None),
        ([65, 66], [3], None),
        ([-2], [3], None),
        ([100_000], [3], None),
        ([65, 66], [3, 4], [[True, True], [True, False]]),
        ([65, 66], [3, 4], [[True]]),
        ([65], [-1], None),
    ],
)
def test_rows_that_make_no_sense_are_refused(
    ids: list[int], positions: list[int], visible: list[list[bool]] | None
) -> None:
    model = tiny_denoiser()
    context = fresh(model, TEXT[:3])
    mask = None if visible is None else torch.tensor(visible)
    rows = CanvasRows(
        torch.tensor(ids, dtype=torch.long), torch.tensor(positions, dtype=torch.long), mask, adapted=True
    )
    with pytest.raises(EngineError) as failure:
        model.step(context, rows)
    assert failure.value.kind == "bad_request"
    assert context.length == 3


def test_equal_seeds_give_equal_models_and_others_differ() -> None:
    logits = [
        model.step(model.context_for([]), canvas([65, 66], 0))
        for model in (tiny_denoiser(1), tiny_denoiser(1), tiny_denoiser(2))
    ]
    assert torch.equal(logits[0], logits[1])
    assert not close(logits[0], logits[2])


def test_tiny_says_what_it_is() -> None:
    facts = tiny_denoiser(3).facts
    assert (facts.family, facts.mask_id, facts.can_draft, facts.window_tokens) == ("tiny", -1, True, 512)
    with pytest.raises(EngineError) as failure:
        tiny_denoiser(precision="int4")
    assert failure.value.kind == "model_unsupported"


def test_int8_is_near_fp32() -> None:
    ids = TEXT[:64]
    logits = []
    for precision in ("fp32", "int8"):
        model = tiny_denoiser(precision=precision)
        logits.append(model.step(fresh(model, ids), canvas(TEXT[64:80], 64)))
    assert float((logits[0] - logits[1]).norm() / logits[0].norm()) < 0.1
