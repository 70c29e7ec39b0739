"""The masked family behind its seam: caches against the long way round, batches, shift, windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.canvas_model import Known, Prediction
from engine.models.masked.families import LAYOUTS
from engine.models.masked.loading import Masked, load_masked
from engine.models.masked.model import MaskedModel
from engine.protocol.errors import EngineError
from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.masked_reference import canvas_of, uncached

EVERY = sorted(LAYOUTS)
BIDIRECTIONAL = [name for name in EVERY if not LAYOUTS[name].block]
BLOCKS = [name for name in EVERY if LAYOUTS[name].block]
PREFIX = "def area(a, b):\n    return "
SUFFIX = "\n\nprint(area(2, 3))\n"

Load = Callable[..., Masked]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Loads a tiny checkpoint of a layout, a fresh model each time."""
    root: Path = tmp_path_factory.mktemp("checkpoints")

    def loaded(layout: str, *, layers: int = 2, **options: Any) -> Masked:
        folder = root / f"{layout}-{layers}"
        if not folder.exists():
            write_checkpoint(folder, layout, layers=layers)
        return load_masked(folder, layout=layout, **options)

    return loaded


def known_for(masked: Masked, prefix: str = PREFIX) -> Known:
    encode = masked.model.tokenizer.encode
    suffix = encode(SUFFIX) if masked.model.facts.right_context else []
    return Known(tuple(encode(prefix)), tuple(suffix))


def masks(masked: Masked, count: int) -> list[int]:
    return [masked.model.facts.mask_id] * count


def guesses(masked: Masked, count: int, seed: int) -> list[int]:
    """Some ids that a canvas may hold."""
    allowed = (~masked.model.facts.forbidden).nonzero().squeeze(-1)
    chosen = torch.randint(allowed.shape[0], (count,), generator=torch.Generator().manual_seed(seed))
    return [int(index) for index in allowed[chosen]]


def opened(model: MaskedModel, known: Known) -> Any:
    """A context whose known text is read."""
    context = model.open(known)
    while model.read_on(context):
        pass
    return context


def step(model: MaskedModel, context: Any, canvases: Sequence[Sequence[int]], *, refresh: bool = False) -> list[Any]:
    predictions: list[Prediction] = model.step(context, [canvas_of(ids) for ids in canvases], refresh=refresh)
    return [prediction.logits for prediction in predictions]


def same(left: torch.Tensor, right: torch.Tensor) -> None:
    torch.testing.assert_close(left, right, atol=2e-5, rtol=1e-5)


@contextmanager
def rows_run(model: MaskedModel) -> Iterator[list[int]]:
    """How many rows each pass through the network had."""
    counts: list[int] = []
    hook = model.network.model.embed_tokens.register_forward_hook(
        lambda _module, given, _output: counts.append(int(given[0].shape[1]))
    )
    try:
        yield counts
    finally:
        hook.remove()


@pytest.mark.parametrize("layout", EVERY)
def test_a_step_is_the_pass_without_a_cache(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    canvases = [masks(masked, 9), guesses(masked, 9, 1)]
    context = masked.model.open(known)
    for logits, canvas in zip(step(masked.model, context, canvases), canvases, strict=True):
        assert logits.shape == (9, masked.model.facts.vocab_size)
        assert logits.dtype == torch.float32
        same(logits, uncached(masked, known.prefix, canvas, known.suffix))


@pytest.mark.parametrize("layout", EVERY)
def test_canvases_of_different_lengths_do_not_touch_each_other(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    canvases = [guesses(masked, length, length) for length in (3, 11, 1, 6)]
    context = masked.model.open(known)
    together = step(masked.model, context, canvases, refresh=True)
    for logits, canvas in zip(together, canvases, strict=True):
        alone = step(masked.model, masked.model.open(known), [canvas])[0]
        same(logits, alone)
        same(logits, uncached(masked, known.prefix, canvas, known.suffix))


@pytest.mark.parametrize("layout", BIDIRECTIONAL)
def test_a_later_token_moves_an_earlier_prediction(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    canvas = masks(masked, 5)
    other = Known(known.prefix, (*known.suffix[:-1], known.suffix[-1] + 1))
    first, second = (step(masked.model, masked.model.open(text), [canvas])[0] for text in (known, other))
    assert (first[0] - second[0]).abs().max() > 1e-3


@pytest.mark.parametrize("layout", BLOCKS)
def test_a_block_sees_itself_and_what_is_before_it(load: Load, layout: str) -> None:
    masked = load(layout)
    block = masked.layout.block
    prefix = tuple(guesses(masked, block, 1))
    canvas = guesses(masked, 2 * block, 2)
    context = masked.model.open(Known(prefix))
    changed_inside = [*canvas[: block - 1], canvas[block - 1] ^ 1, *canvas[block:]]
    changed_behind = [*canvas[:block], canvas[block] ^ 1, *canvas[block + 1 :]]
    base, inside, behind = (step(masked.model, context, [ids])[0] for ids in (canvas, changed_inside, changed_behind))
    assert (base[0] - inside[0]).abs().max() > 1e-3
    assert (base[block] - inside[block]).abs().max() > 1e-3
    same(base[:block], behind[:block])
    assert (base[block] - behind[block]).abs().max() > 1e-3


@pytest.mark.parametrize("layout", BIDIRECTIONAL)
def test_right_after_a_refresh_the_cached_step_is_exact_and_runs_the_canvas_only(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    canvases = [guesses(masked, length, length) for length in (7, 4)]
    context = masked.model.open(known)
    with rows_run(masked.model) as rows:
        fresh = step(masked.model, context, canvases)
        cached = step(masked.model, context, canvases)
    lead = 1 if masked.layout.shift else 0
    assert rows == [len(known.prefix) + len(known.suffix) + 7, 7 + lead]
    for left, right in zip(fresh, cached, strict=True):
        same(left, right)


@pytest.mark.parametrize("layout", BIDIRECTIONAL)
def test_a_stale_step_is_near_and_a_refresh_mends_it(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    context = masked.model.open(known)
    step(masked.model, context, [masks(masked, 8)])
    filled = guesses(masked, 8, 3)
    exact = uncached(masked, known.prefix, filled, known.suffix)
    stale = step(masked.model, context, [filled])[0]
    assert (stale - exact).abs().max() > 1e-4
    assert (stale - exact).abs().mean() < exact.std()
    same(step(masked.model, context, [filled], refresh=True)[0], exact)


@pytest.mark.parametrize("layout", BIDIRECTIONAL)
def test_a_canvas_that_grows_or_shrinks_moves_the_suffix(load: Load, layout: str) -> None:
    """With one layer keys depend on a token and its place only, so that a moved suffix must be exactly right."""
    masked = load(layout, layers=1)
    known = known_for(masked)
    context = masked.model.open(known)
    step(masked.model, context, [masks(masked, 6), masks(masked, 3)])
    for lengths in ((9, 3), (2, 12), (2, 12), (6, 1)):
        canvases = [guesses(masked, length, length) for length in lengths]
        with rows_run(masked.model) as rows:
            predicted = step(masked.model, context, canvases)
        assert rows == [max(lengths) + (1 if masked.layout.shift else 0)]
        for logits, canvas in zip(predicted, canvases, strict=True):
            same(logits, uncached(masked, known.prefix, canvas, known.suffix))


def test_another_number_of_canvases_is_a_refresh(load: Load) -> None:
    masked = load("llada")
    known = known_for(masked)
    canvases = [guesses(masked, 5, seed) for seed in range(3)]
    context = masked.model.open(known)
    step(masked.model, context, canvases)
    same(step(masked.model, context, canvases[2:])[0], uncached(masked, known.prefix, canvases[2], known.suffix))


@pytest.mark.parametrize("layout", ["dream", "sdar"])
def test_no_step_moves_the_known_text(load: Load, layout: str) -> None:
    """Buffers are allocated once: nothing is concatenated, and a longer canvas inside the room allocates nothing."""
    masked = load(layout)
    context = masked.model.open(known_for(masked))
    step(masked.model, context, [masks(masked, 8)])
    layers: list[Any] = list(context.resident.cache.layers)
    before = [(layer.keys.data_ptr(), layer.keys[0, :, :4].clone()) for layer in layers]
    for length in (8, 9, 4):
        step(masked.model, context, [guesses(masked, length, length)])
    for layer, (address, keys) in zip(layers, before, strict=True):
        assert layer.keys.data_ptr() == address
        assert torch.equal(layer.keys[0, :, :4], keys)


@pytest.mark.parametrize("layout", ["dream", "llada", "sdar"])
def test_equal_canvases_need_no_mask(load: Load, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    """Fused attention kernels take no mask, and must not take the lack of one for a causal call."""
    attend = torch.nn.functional.scaled_dot_product_attention
    calls: list[tuple[Any, bool]] = []

    def spy(*given: Any, **options: Any) -> torch.Tensor:
        calls.append((options["attn_mask"], options["is_causal"]))
        return attend(*given, **options)

    masked = load(layout)
    block = masked.layout.block or 4
    context = opened(masked.model, Known(tuple(guesses(masked, 2 * block, 1)), known_for(masked).suffix))
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    for _ in range(2):
        step(masked.model, context, [masks(masked, block), guesses(masked, block, 2)])
    assert calls == [(None, False)] * len(calls)
    assert len(calls) == 4


@pytest.mark.parametrize("layout", EVERY)
def test_committed_text_is_prefix(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    context = masked.model.open(known)
    step(masked.model, context, [masks(masked, 5), masks(masked, 2)])
    prefix = known.prefix
    for length in (5, 3, 70):
        made = guesses(masked, length, length)
        masked.model.commit(context, made)
        prefix = (*prefix, *made)
        canvases = [guesses(masked, 6, 9), guesses(masked, 6, 10)]
        for logits, canvas in zip(step(masked.model, context, canvases), canvases, strict=True):
            same(logits, uncached(masked, prefix, canvas, known.suffix))


@pytest.mark.parametrize("layout", BLOCKS)
def test_whole_blocks_stay_resident_between_requests(load: Load, layout: str) -> None:
    masked = load(layout)
    block = masked.layout.block
    known = Known(tuple(guesses(masked, 3 * block + 3, 1)))
    first = masked.model.open(known)
    assert first.cached == 0
    step(masked.model, first, [masks(masked, 4)])
    masked.model.close(first)
    longer = Known((*known.prefix, *guesses(masked, 2, 2)))
    with rows_run(masked.model) as rows:
        again = masked.model.open(longer)
        logits = step(masked.model, again, [masks(masked, 4)])[0]
    assert again.cached == 3 * block
    assert sum(rows) == len(longer.prefix) - 3 * block + 4
    same(logits, uncached(masked, longer.prefix, masks(masked, 4)))


def test_a_context_in_use_is_no_other_request_s(load: Load) -> None:
    masked = load("sdar")
    known = known_for(masked)
    first = masked.model.open(known)
    second = masked.model.open(known)
    masked.model.commit(second, guesses(masked, 9, 1))
    same(step(masked.model, first, [masks(masked, 4)])[0], uncached(masked, known.prefix, masks(masked, 4)))


def test_a_long_prefix_is_computed_in_chunks(load: Load) -> None:
    masked = load("sdar")
    known = Known(tuple(guesses(masked, 1301, 1)))
    with rows_run(masked.model) as rows:
        context = opened(masked.model, known)
    assert rows == [512, 512, 276]
    same(step(masked.model, context, [masks(masked, 4)])[0], uncached(masked, known.prefix, masks(masked, 4)))


@pytest.mark.parametrize("layout", [name for name in EVERY if LAYOUTS[name].shift])
def test_an_empty_prefix_of_a_shifted_family_is_its_start_token(load: Load, layout: str) -> None:
    masked = load(layout)
    start = masked.roles.start
    assert start >= 0
    canvas = masks(masked, 4)
    logits = step(masked.model, masked.model.open(Known((), known_for(masked).suffix)), [canvas])[0]
    same(logits, uncached(masked, (start,), canvas, known_for(masked).suffix))


@pytest.mark.parametrize("layout", ["llada", "sdar"])
def test_an_empty_text_is_fine_without_a_shift(load: Load, layout: str) -> None:
    masked = load(layout)
    canvas = masks(masked, 6)
    same(step(masked.model, masked.model.open(Known(())), [canvas])[0], uncached(masked, (), canvas))


@pytest.mark.parametrize("layout", EVERY)
def test_guidance_hides_the_known_text(load: Load, layout: str) -> None:
    masked = load(layout)
    known = known_for(masked)
    canvases = [guesses(masked, 5, 1), guesses(masked, 7, 2)]
    context = masked.model.open(known)
    free = masked.model.step_unconditional(context, [canvas_of(canvas) for canvas in canvases])
    hidden = (masks(masked, len(known.prefix)), masks(masked, len(known.suffix)))
    for prediction, canvas in zip(free, canvases, strict=True):
        same(prediction.logits, uncached(masked, hidden[0], canvas, hidden[1]))


@pytest.mark.parametrize("layout", ["open-dcoder", "stable-diffcoder"])
def test_half_precision_is_near(load: Load, layout: str) -> None:
    exact, rough = load(layout), load(layout, precision="bf16")
    known = known_for(exact)
    canvas = masks(exact, 8)
    left, right = (step(masked.model, masked.model.open(known), [canvas])[0] for masked in (exact, rough))
    assert right.dtype == torch.float32
    assert (left - right).abs().mean() < 0.1 * left.std()


@pytest.mark.parametrize("layout", ["dream", "sdar"])
def test_what_outgrows_the_window_is_refused(load: Load, layout: str) -> None:
    masked = load(layout, window_tokens=40)
    assert masked.model.facts.window_tokens == 40
    with pytest.raises(EngineError, match="window holds 40") as refused:
        masked.model.open(Known(tuple(guesses(masked, 40, 1))))
    assert refused.value.kind == "window_exceeded"
    context = masked.model.open(Known(tuple(guesses(masked, 20, 1))))
    step(masked.model, context, [masks(masked, 20)])
    with pytest.raises(EngineError, match="needs 41 tokens"):
        step(masked.model, context, [masks(masked, 3), masks(masked, 21)])
    with pytest.raises(EngineError, match="needs 41 tokens"):
        masked.model.commit(context, guesses(masked, 21, 2))


def test_misuse_is_told(load: Load) -> None:
    masked = load("sdar")
    with pytest.raises(ValueError, match="right of the canvas"):
        masked.model.open(Known((1, 2), (3,)))
    context = masked.model.open(Known((1, 2)))
    with pytest.raises(ValueError, match="at least one place"):
        masked.model.step(context, [])
    with pytest.raises(ValueError, match="at least one place"):
        step(masked.model, context, [[]])
    masked.model.close(context)
    with pytest.raises(ValueError, match="open"):
        step(masked.model, context, [masks(masked, 1)])
