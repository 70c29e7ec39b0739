"""Shards give back what was written, and nothing that is no whole shard passes for one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from engine.training.shards import MOST_MIDDLE, MOST_PREFIX, MOST_SUFFIX, Shard, TokenHole, write_shard

IDS = st.integers(0, 151_935)
HOLES = st.builds(
    TokenHole,
    st.lists(IDS, max_size=9).map(tuple),
    st.lists(IDS, max_size=9).map(tuple),
    st.lists(IDS, max_size=9).map(tuple),
    st.sampled_from(["lines", "span", "empty"]),
    st.sampled_from(["python", "go", "cpp"]),
)
EXAMPLES = [
    TokenHole((1, 2, 3), (4,), (5, 6), "lines", "python"),
    TokenHole((), (), (), "empty", "go"),
    TokenHole(tuple(range(MOST_PREFIX)), tuple(range(MOST_MIDDLE)), tuple(range(MOST_SUFFIX)), "span", "python"),
]


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "train-000.safetensors"
    write_shard(path, EXAMPLES, {"seed": "7", "split": "train"})
    return path


@settings(max_examples=25, deadline=None)
@given(st.lists(HOLES, min_size=1, max_size=12))
def test_holes_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, holes: list[TokenHole]) -> None:
    path = tmp_path_factory.mktemp("shard") / "a.safetensors"
    write_shard(path, holes, {})
    assert list(Shard(path)) == holes


def test_a_shard_counts_describes_and_indexes(shard: Path) -> None:
    read = Shard(shard)
    assert len(read) == len(EXAMPLES)
    assert dict(read.description) == {"seed": "7", "split": "train"}
    assert read[-1] == EXAMPLES[-1]
    for beyond in (len(EXAMPLES), -len(EXAMPLES) - 1):
        with pytest.raises(IndexError):
            read[beyond]


def test_only_the_whole_file_is_ever_there(shard: Path) -> None:
    assert [path.name for path in shard.parent.iterdir()] == [shard.name]
    with pytest.raises(ValueError, match="without holes"):
        write_shard(shard, [], {})
    assert list(Shard(shard)) == EXAMPLES


def test_the_same_holes_make_the_same_bytes(tmp_path: Path, shard: Path) -> None:
    again = tmp_path / "again.safetensors"
    write_shard(again, EXAMPLES, {"split": "train", "seed": "7"})
    assert again.read_bytes() == shard.read_bytes()


def test_too_long_parts_are_refused() -> None:
    for sizes in ((MOST_PREFIX + 1, 1, 1), (1, MOST_MIDDLE + 1, 1), (1, 1, MOST_SUFFIX + 1)):
        with pytest.raises(ValueError, match="shorten it"):
            TokenHole((0,) * sizes[0], (0,) * sizes[1], (0,) * sizes[2], "span", "c")


def test_a_missing_shard_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"engine\.training shards"):
        Shard(tmp_path / "gone.safetensors")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_cut_file_is_no_shard(shard: Path, share: float) -> None:
    data = shard.read_bytes()
    shard.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match=r"is no shard.*build it again"):
        Shard(shard)


def test_a_shard_of_another_format_is_refused(shard: Path) -> None:
    save_file(
        load_file(shard),
        shard,
        metadata={"shard": '{"format": "lacuna-holes-9", "kinds": [], "languages": [], "description": {}}'},
    )
    with pytest.raises(ValueError, match="its format is lacuna-holes-9"):
        Shard(shard)
    for metadata in ({}, {"shard": "[]"}, {"shard": "{"}):
        save_file(load_file(shard), shard, metadata=metadata)
        with pytest.raises(ValueError, match="is no shard"):
            Shard(shard)


def test_other_files_are_no_shards(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"weight": np.zeros(3, np.float32)}, path)
    with pytest.raises(ValueError, match="is no shard"):
        Shard(path)
    path.write_text("not safetensors", encoding="utf-8")
    with pytest.raises(ValueError, match="is no shard"):
        Shard(path)


def _with(shard: Path, **changed: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    """Write the shard again with some of its arrays replaced."""
    with safe_open(shard, framework="numpy") as stored:
        metadata = stored.metadata()
    save_file({**load_file(shard), **changed}, shard, metadata=metadata)


def test_the_unchanged_arrays_are_a_shard(shard: Path) -> None:
    _with(shard)
    assert list(Shard(shard)) == EXAMPLES


@pytest.mark.parametrize(
    ("part", "values", "problem"),
    [
        ("bounds", [0, 1, 2], "different lengths"),
        ("bounds", [0, 3, 2, 6, 6, 6, 6, 646, 774, 974], "do not cover"),
        ("bounds", [0, 3, 4, 6, 6, 6, 6, 646, 774, 973], "do not cover"),
        ("bounds", [0, 3, 4, 6, 6, 6, 6, 6, 774, 974], "longer than a hole"),
        ("kind", [0, 1, 9], "a kind has no name"),
        ("language", [0, 1, 2], "a language has no name"),
        ("language", [0, 1], "different lengths"),
    ],
)
def test_damaged_arrays_are_named(shard: Path, part: str, values: list[int], problem: str) -> None:
    dtype = np.int64 if part == "bounds" else np.uint8
    _with(shard, **{part: np.array(values, dtype)})
    with pytest.raises(ValueError, match=problem):
        Shard(shard)


def test_ids_that_no_model_has_are_refused(shard: Path) -> None:
    ids = load_file(shard)["ids"]
    _with(shard, ids=-ids - 1)
    with pytest.raises(ValueError, match="negative"):
        Shard(shard)
    _with(shard, ids=ids.astype(np.float32))
    with pytest.raises(ValueError, match="float32"):
        Shard(shard)
