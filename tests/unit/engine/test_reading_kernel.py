"""What the kernel reads and draws is what the plain formulas say, and what torch's way gives."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from engine.diffusion.drawing import Choice, nucleus
from engine.diffusion.reading import Places, Reading, Scratch, read
from engine.runtime.packed import Kernel, find_kernel
from engine.runtime.softmax import drawn, softmax

FOUND = find_kernel()
needs_kernel = pytest.mark.skipif(FOUND is None, reason="the kernel was not built, or this processor cannot run it")
WIDTHS = [1, 5, 8, 63, 64, 100, 1000, 32_773]
NAN = math.nan


@pytest.fixture
def kernel() -> Kernel:
    assert FOUND is not None
    return FOUND


def rows(width: int, count: int = 40, scale: float = 3.0) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(width)) * scale


def dice(count: int, tries: int, seed: int = 1) -> torch.Tensor:
    return torch.rand(count, tries, generator=torch.Generator().manual_seed(seed))


def seen(logits: torch.Tensor, choice: Choice, kernel: Kernel | None) -> Reading:
    ids = torch.arange(logits.shape[0]) % logits.shape[1]
    places = Places(None, ids, lambda held, start: None)
    return read(logits, places, choice, torch.Generator().manual_seed(3), Scratch(kernel))


def chi_square(drawn_ids: torch.Tensor, chances: torch.Tensor) -> float:
    """Pearson's statistic of ids drawn from one distribution ([vocab]), over its degrees of freedom."""
    expected = chances.double() / chances.double().sum() * drawn_ids.shape[0]
    found = torch.bincount(drawn_ids, minlength=chances.shape[0]).double()
    assert not found[expected == 0].any()
    possible = expected > 0
    squares = (found - expected).square()[possible] / expected[possible]
    return float(squares.sum()) / max(1, int(possible.sum()) - 1)


@needs_kernel
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scale", [0.01, 3.0, 40.0])
def test_softmax_and_entropy_are_those_of_the_plain_formulas(kernel: Kernel, width: int, scale: float) -> None:
    logits = rows(width, scale=scale)
    logits[:, 1::3] = -math.inf
    probs = torch.empty_like(logits)
    peaks = softmax(logits, probs, kernel)
    exact = logits.double().softmax(dim=-1)
    torch.testing.assert_close(probs, exact.float(), atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(peaks.best, exact.amax(dim=-1).float(), atol=1e-7, rtol=1e-5)
    entropy = torch.special.entr(exact).sum(dim=-1).float()
    torch.testing.assert_close(peaks.entropy, entropy, atol=2e-6, rtol=1e-5)
    assert (peaks.entropy >= 0).all()
    assert torch.equal(peaks.likeliest, logits.argmax(dim=-1))
    assert not probs[:, 1::3].any()


@needs_kernel
def test_of_equal_logits_the_first_is_the_likeliest(kernel: Kernel) -> None:
    logits = torch.zeros(3, 100)
    logits[0, [13, 70]], logits[1, [96, 99]] = 1.0, 1.0
    assert softmax(logits, torch.empty_like(logits), kernel).likeliest.tolist() == [13, 96, 0]


@needs_kernel
def test_rows_of_no_usable_numbers_are_nan_and_draw_a_place_in_range(kernel: Kernel) -> None:
    logits = torch.zeros(4, 77)
    logits[0, 76], logits[1], logits[2, 3] = NAN, -math.inf, math.inf
    probs = torch.empty_like(logits)
    peaks = softmax(logits, probs, kernel)
    for found in (peaks.best, peaks.entropy, probs[:, 5]):
        assert found.isnan().tolist() == [True, True, True, False]
    for top_p in (0.3, 1.0):
        places = drawn(probs, dice(4, 3), top_p, kernel)
        assert ((places >= 0) & (places < 77)).all()


@needs_kernel
@pytest.mark.parametrize("width", WIDTHS)
def test_a_draw_of_all_ids_is_where_its_number_falls_in_the_running_sum(kernel: Kernel, width: int) -> None:
    probs, numbers = rows(width).softmax(dim=-1), dice(40, 1)
    found = drawn(probs, numbers, 1.0, kernel)[:, None]
    above = probs.double().cumsum(dim=-1).gather(-1, found)
    below = above - probs.gather(-1, found)
    assert ((below - 1e-5 <= numbers) & (numbers <= above + 1e-5)).all()


@needs_kernel
def test_an_id_of_no_probability_is_never_drawn(kernel: Kernel) -> None:
    probs = torch.zeros(2, 130)
    probs[:, [64, 129]] = torch.tensor([0.25, 0.75])
    for number, place in ((0.0, 64), (0.2499, 64), (0.2501, 129), (1 - 2**-24, 129)):
        assert drawn(probs, torch.full((2, 1), number), 1.0, kernel).tolist() == [place, place]


@pytest.mark.parametrize("by_kernel", [pytest.param(True, marks=needs_kernel), False])
@pytest.mark.parametrize("top_p", [0.02, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("width", [50, 192])
def test_draws_are_distributed_as_the_plain_nucleus_is(by_kernel: bool, top_p: float, width: int) -> None:
    one = rows(width, 1, scale=1.0)
    plain = one.softmax(dim=-1)
    wanted = nucleus(plain, top_p)[0] if top_p < 1 else plain[0]
    found = seen(one.repeat(30_000, 1), Choice(1.0, False, top_p), FOUND if by_kernel else None)
    # The statistic of true draws is 1 on average, and with 50 ids and more hardly ever above 1.8.
    assert chi_square(found.chosen, wanted) < 1.8


@needs_kernel
def test_a_nucleus_that_refuses_every_die_is_told_and_drawn_all_the_same(kernel: Kernel) -> None:
    flat = torch.full((500, 4096), 1.0)
    flat[:, 7] = 1.0001
    probs = flat.softmax(dim=-1)
    assert (drawn(probs, torch.full((500, 1), 0.9), 1e-6, kernel) == -1).all()
    assert (seen(flat, Choice(1.0, False, 1e-6), kernel).chosen == 7).all()


@needs_kernel
@pytest.mark.parametrize("choice", [Choice(0.7, False, 1.0), Choice(0.7, False, 0.9), Choice(0.0, True, 1.0, others=3)])
def test_a_reading_by_the_kernel_is_that_of_torch(kernel: Kernel, choice: Choice) -> None:
    logits = rows(1000, 60)
    mine, torchs = seen(logits, choice, kernel), seen(logits, choice, None)
    for name in ("likeliest", "best", "present", "entropy"):
        torch.testing.assert_close(getattr(mine, name), getattr(torchs, name), atol=1e-6, rtol=1e-5)
    assert (mine.chosen == torchs.chosen).float().mean() > (0.99 if choice.top_p == 1 else 0.8)


@needs_kernel
def test_as_many_threads_as_there_are_give_the_same_bits(kernel: Kernel) -> None:
    logits, before = rows(1000, 33), torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        probs = torch.empty_like(logits)
        found.append((softmax(logits, probs, kernel).entropy, probs, drawn(probs, dice(33, 4), 0.8, kernel)))
    torch.set_num_threads(before)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


@needs_kernel
@pytest.mark.parametrize(
    "wrong",
    [
        lambda kernel: softmax(torch.zeros(2, 8), torch.zeros(2, 9), kernel),
        lambda kernel: softmax(torch.zeros(2, 8).double(), torch.zeros(2, 8), kernel),
        lambda kernel: softmax(torch.zeros(8, 2).T, torch.zeros(2, 8), kernel),
        lambda kernel: drawn(torch.zeros(2, 8), torch.zeros(3, 1), 1.0, kernel),
    ],
)
def test_tensors_the_kernel_cannot_read_are_refused(kernel: Kernel, wrong: Callable[[Kernel], object]) -> None:
    with pytest.raises(ValueError, match=r"expected|dice|probabilities"):
        wrong(kernel)
