"""Packed matrices: made in pieces or at once, given back as rows and as they were; files of them, mapped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.models.weight_files import ALIGNMENT, read_weights, save_weights
from engine.runtime.embedding import FloatEmbedding, PackedEmbedding
from engine.runtime.linear import quantise_per_channel
from engine.runtime.packed import pack
from engine.runtime.packed_matrix import PackedMatrix


def _dense(rows: int, inputs: int) -> torch.Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize(("rows", "inputs"), [(16, 8), (21, 8), (3, 6), (40, 33)])
def test_a_matrix_made_in_pieces_is_the_one_made_at_once(rows: int, inputs: int) -> None:
    dense = _dense(rows, inputs)
    pieces, whole = PackedMatrix.of_rows(torch.split(dense, 8)), PackedMatrix.of_rows([dense])
    weight, scale = quantise_per_channel(dense)
    assert torch.equal(whole.weight, pack(weight))
    for one, other in ((pieces.weight, whole.weight), (pieces.scale, scale), (pieces.correction, whole.correction)):
        assert torch.equal(one, other)
    assert torch.equal(pieces.unpacked(inputs)[0], weight)
    sums = torch.nn.functional.pad(weight.int().sum(1), (0, -rows % 8))
    assert torch.equal(whole.correction, 128 * sums.int())


def test_rows_are_those_of_the_dense_matrix() -> None:
    dense = _dense(21, 30)
    weight, scale = quantise_per_channel(dense)
    ids = torch.tensor([20, 0, 7, 8, 7])
    rows = PackedEmbedding(PackedMatrix.of_rows([dense]), 30)(ids)
    assert rows.dtype == torch.float32
    assert torch.equal(rows, (weight.float() * scale[:, None])[ids])
    assert torch.equal(FloatEmbedding(dense.half())(ids), dense.half().float()[ids])


def test_a_file_gives_back_what_it_was_given_on_whole_cache_lines(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    packed = pack(torch.ones(16, 64, dtype=torch.int8))
    kept = {"scale": torch.rand(16), "sums": torch.arange(16, dtype=torch.int32), "weight": packed}
    save_weights(kept, path)
    begin = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    assert begin % ALIGNMENT == 0
    for found in (read_weights(path), load_file(path)):
        assert found.keys() == kept.keys()
        assert all(torch.equal(found[name], tensor) for name, tensor in kept.items())


def test_a_file_is_mapped_and_what_is_written_to_its_tensors_stays_here(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_weights({"weight": torch.zeros(8, 8)}, path)
    found = read_weights(path)["weight"]
    before = path.read_bytes()
    found.fill_(1.0)
    assert path.read_bytes() == before


def test_touching_changes_nothing() -> None:
    matrix = PackedMatrix.of_rows([_dense(4100, 8)])
    before = matrix.weight.clone()
    matrix.touch()
    assert torch.equal(matrix.weight, before)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(SafetensorError):
        read_weights(path)
