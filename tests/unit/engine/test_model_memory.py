"""Whether a model fits, judged from its files' headers before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.models.memory import fitting_precision, free_bytes, needed_bytes, values_in
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


@pytest.mark.parametrize(
    ("wanted", "device", "free", "chosen"),
    [
        ("auto", "cpu", 40 * BILLION, "fp32"),
        ("auto", "cpu", 20 * BILLION, "bf16"),
        ("auto", "cuda:0", 40 * BILLION, "bf16"),
        ("fp32", "cpu", 40 * BILLION, "fp32"),
        ("bf16", "cpu", 40 * BILLION, "bf16"),
    ],
)
def test_what_fits_is_chosen(wanted: str, device: str, free: int, chosen: str) -> None:
    assert fitting_precision(wanted, 7 * BILLION, free, device) == chosen


@pytest.mark.parametrize(
    ("wanted", "remedy"), [("auto", "smaller model"), ("fp32", "precision to bf16"), ("bf16", "smaller model")]
)
def test_what_cannot_fit_is_refused_before_it_is_loaded(wanted: str, remedy: str) -> None:
    with pytest.raises(EngineError, match=r"and 2\.0 GB are free on cpu") as caught:
        fitting_precision(wanted, 7 * BILLION, 2 * BILLION, "cpu")
    assert (caught.value.kind, remedy in caught.value.remedy) == ("out_of_memory", True)


def test_half_the_bits_are_about_half_the_memory() -> None:
    assert needed_bytes(BILLION, "bf16") < 0.6 * needed_bytes(BILLION, "fp32")
    assert free_bytes("cpu") > 0
