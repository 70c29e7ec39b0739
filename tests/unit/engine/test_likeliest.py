"""The likeliest ids against torch's own, ties and odd numbers included."""

from __future__ import annotations

import math

import pytest
import torch

from engine.diffusion.likeliest import likeliest


@pytest.mark.parametrize("width", [1, 7, 1_000, 40_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_as_torch_on_a_part_of_wider_rows(width: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(width)
    with torch.inference_mode():
        logits = torch.randn(5, width + 3, generator=generator).to(dtype)[:, :width]
    assert likeliest(logits) == logits.argmax(-1).tolist()


def test_of_equal_logits_the_lowest_id() -> None:
    assert likeliest(torch.tensor([[0.0, 2.0, 2.0], [1.0, 1.0, 1.0], [-math.inf, -math.inf, 0.0]])) == [1, 0, 2]


def test_a_number_that_is_none_is_found_as_torch_finds_it() -> None:
    logits = torch.tensor([[0.0, math.nan, 2.0], [math.inf, math.nan, math.nan]])
    assert likeliest(logits) == logits.argmax(-1).tolist()


def test_no_rows_have_no_likeliest() -> None:
    assert likeliest(torch.zeros(0, 4)) == []
