"""Checkpoints: what is written is read, what is damaged or another model's is refused, the one before is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.training.checkpoint import (
    Checkpoint,
    Standing,
    present_path,
    previous_path,
    read_checkpoint,
    read_latest,
    write_checkpoint,
)

BASE = "a" * 64
METADATA = {"format": "lacuna-training-1", "standing": '{"step": 3, "gap": 24, "seconds": 1.5}', "base_sha256": BASE}


def checkpoint(seed: int = 0) -> Checkpoint:
    dice = torch.Generator().manual_seed(seed)
    sizes = {"mask_embedding": (4,), "x.lora_A": (2, 3)}
    kinds = [{name: torch.randn(size, generator=dice) for name, size in sizes.items()} for _ in range(4)]
    return Checkpoint(Standing(3, 24, 1.5), BASE, *kinds)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "checkpoint.safetensors"


def stored(seed: int = 0) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint by the names they have in its file."""
    made = checkpoint(seed)
    kinds = {"parameters": made.parameters, "average": made.average, "first": made.first, "second": made.second}
    return {f"{kind}.{name}": tensor.clone() for kind, group in kinds.items() for name, tensor in group.items()}


def write(path: Path, tensors: dict[str, torch.Tensor], **metadata: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, METADATA | metadata)


def same(left: Checkpoint, right: Checkpoint) -> bool:
    groups = [(getattr(left, kind), getattr(right, kind)) for kind in ("parameters", "average", "first", "second")]
    return left.standing == right.standing and all(
        set(ours) == set(theirs) and all(torch.equal(ours[name], theirs[name]) for name in ours)
        for ours, theirs in groups
    )


def test_what_is_written_is_read(path: Path) -> None:
    write_checkpoint(path, checkpoint())
    assert same(read_checkpoint(path, BASE), checkpoint())
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_the_format_is_the_one_runs_are_kept_in(path: Path) -> None:
    write(path, stored())
    assert same(read_checkpoint(path, BASE), checkpoint())
    write_checkpoint(path, checkpoint())
    assert load_file(path).keys() == stored().keys()


def test_the_one_before_is_kept(path: Path) -> None:
    for seed in range(3):
        write_checkpoint(path, checkpoint(seed))
    assert same(read_checkpoint(path, BASE), checkpoint(2))
    assert same(read_checkpoint(previous_path(path), BASE), checkpoint(1))
    assert previous_path(path).name == "checkpoint.previous.safetensors"


def test_the_one_before_stands_in_where_writing_was_cut_short(path: Path) -> None:
    assert present_path(path) is None
    write_checkpoint(path, checkpoint())
    path.rename(previous_path(path))
    assert present_path(path) == previous_path(path)
    assert same(read_latest(path, BASE), checkpoint())


def test_a_folder_without_a_checkpoint_says_so(path: Path) -> None:
    with pytest.raises(ValueError, match="holds no checkpoint"):
        read_latest(path, BASE)


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@pytest.mark.parametrize("kind", ["parameters", "average", "first", "second"])
def test_numbers_that_are_not_finite_are_never_written(path: Path, kind: str, broken: float) -> None:
    write_checkpoint(path, checkpoint())
    before = path.read_bytes()
    bad = {name: tensor.clone() for name, tensor in checkpoint(1).parameters.items()}
    bad["x.lora_A"][1, 2] = broken
    with pytest.raises(ValueError, match=rf"{kind}\.x\.lora_A holds numbers that are not finite"):
        write_checkpoint(path, replace(checkpoint(1), **{kind: bad}))  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert not previous_path(path).exists()


def test_a_disk_that_takes_no_file_is_an_os_error_and_changes_nothing(path: Path) -> None:
    write_checkpoint(path, checkpoint())
    path.with_name(f".{path.name}.partial").mkdir()
    with pytest.raises(OSError, match="cannot be written"):
        write_checkpoint(path, checkpoint(1))
    assert same(read_checkpoint(path, BASE), checkpoint())


@pytest.mark.parametrize("size", [0, 4, 100, -1])
def test_a_truncated_one_is_refused_with_the_way_back(path: Path, size: int) -> None:
    write_checkpoint(path, checkpoint())
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"is damaged .*: remove it to start again"):
        read_checkpoint(path, BASE)
    write_checkpoint(path, checkpoint())
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"go back with `mv \S*checkpoint\.previous\.safetensors \S*checkpoint"):
        read_latest(path, BASE)


def test_another_models_or_another_versions_is_refused(path: Path) -> None:
    write_checkpoint(path, checkpoint())
    with pytest.raises(ValueError, match="another model file: give the run a folder of its own"):
        read_checkpoint(path, "b" * 64)
    write(path, stored(), format="lacuna-training-0")
    with pytest.raises(ValueError, match="no checkpoint of this version"):
        read_checkpoint(path, BASE)


@pytest.mark.parametrize(
    "standing", ["", "[]", "{}", '{"step": 1, "gap": 2}', '{"step": null, "gap": 2, "seconds": 1}', '{"step": "x"}']
)
def test_one_that_does_not_say_where_it_stands_is_refused(path: Path, standing: str) -> None:
    write(path, stored(), standing=standing)
    with pytest.raises(ValueError, match="does not say where the run stands"):
        read_checkpoint(path, BASE)


def test_parts_that_do_not_belong_together_are_refused(path: Path) -> None:
    whole = stored()
    short = {name: tensor for name, tensor in whole.items() if name != "second.x.lora_A"}
    other_size = whole | {"average.mask_embedding": torch.zeros(5)}
    for tensors in (short, other_size, whole | {"third.x.lora_A": torch.zeros(1)}, {}):
        write(path, tensors)
        with pytest.raises(ValueError, match="do not belong together"):
            read_checkpoint(path, BASE)
    write(path, {name: tensor.half() for name, tensor in whole.items()})
    with pytest.raises(ValueError, match="not float32"):
        read_checkpoint(path, BASE)
    write(path, whole | {"first.mask_embedding": torch.full((4,), torch.nan)})
    with pytest.raises(ValueError, match="not finite"):
        read_checkpoint(path, BASE)


def test_where_a_run_stands_is_kept_as_json(path: Path) -> None:
    assert json.loads(METADATA["standing"]) == {"step": 3, "gap": 24, "seconds": 1.5}
    write_checkpoint(path, replace(checkpoint(), standing=Standing(10**9, 10**12, 0.1)))
    assert read_checkpoint(path, BASE).standing == Standing(10**9, 10**12, 0.1)
