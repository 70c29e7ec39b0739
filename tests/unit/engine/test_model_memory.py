"""Whether a model fits, judged from its files' headers before anything is loaded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.models.memory import (
    BYTES_PER_VALUE,
    MemoryEstimate,
    canvas_work,
    fitting_precision,
    free_bytes,
    values_in,
)
from engine.protocol.errors import EngineError

BILLION = 1_000_000_000


def test_numbers_are_counted_over_all_files_without_reading_them(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7)}, tmp_path / "one.safetensors")
    save_file({"c": torch.zeros(2, 2, 2)}, tmp_path / "two.safetensors", metadata={"format": "pt"})
    assert values_in(tmp_path) == 30


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 16, (3).to_bytes(8, "little") + b"[1]", b"\x02\0\0\0\0\0\0\0nothing"]
)
def test_a_file_without_a_header_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "one.safetensors").write_bytes(content)
    with pytest.raises(EngineError) as caught:
        values_in(tmp_path)
    assert caught.value.kind == "model_corrupt"


def test_a_tensor_without_a_shape_is_corrupt(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32"}}).encode()
    (tmp_path / "one.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(EngineError, match="header"):
        values_in(tmp_path)


def sizes(values: int) -> dict[str, MemoryEstimate]:
    """Of a model of so many numbers, with caches of a tenth of them."""
    return {kind: MemoryEstimate(values * size, values * size // 10, 0) for kind, size in BYTES_PER_VALUE.items()}


@pytest.mark.parametrize(
    ("wanted", "free", "chosen"),
    [
        (["fp32", "bf16"], 40 * BILLION, "fp32"),
        (["fp32", "bf16"], 20 * BILLION, "bf16"),
        (["bf16"], 40 * BILLION, "bf16"),
        (["fp32"], 40 * BILLION, "fp32"),
    ],
)
def test_what_fits_is_chosen(wanted: list[str], free: int, chosen: str) -> None:
    assert fitting_precision("big", wanted, sizes(7 * BILLION), free, "cpu") == chosen


@pytest.mark.parametrize(
    ("wanted", "free", "remedy"),
    [
        (["fp32", "bf16"], 2, "smaller model: even in bf16 it needs 15.4 GB"),
        (["fp32"], 16, r"load it in less: bf16 \(15.4 GB\) or fp16 \(15.4 GB\) would fit"),
        (["bf16"], 2, "smaller model"),
    ],
)
def test_what_cannot_fit_is_refused_before_it_is_loaded(wanted: list[str], free: int, remedy: str) -> None:
    with pytest.raises(EngineError, match=rf"big needs about .* and {free}\.0 GB are free on cpu") as caught:
        fitting_precision("big", wanted, sizes(7 * BILLION), free * BILLION, "cpu")
    assert caught.value.kind == "out_of_memory"
    assert re.search(remedy, caught.value.remedy)


def test_the_work_on_a_canvas_is_its_logits_or_the_largest_tensor() -> None:
    assert canvas_work(256, 1000) == 4 * canvas_work(64, 1000) > 256 * 1000 * 4
    assert canvas_work(1, 1000, largest_tensor=BILLION) == BILLION
    assert free_bytes("cpu") > 0
