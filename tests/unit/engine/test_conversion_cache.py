"""The converted folder on a tiny file: made once, again when it was changed, and never where it does not fit."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from engine.models.conversion import convert_gguf, converted_bytes, is_current, read_manifest, write_failure
from engine.models.folder_record import converted_folder, converted_state
from engine.protocol.errors import EngineError
from tests.fakes.tiny_loading import difference, load, logits
from tests.fakes.tiny_model import HIDDEN, LAYERS, TinyGguf, write_tiny_gguf


def test_the_second_start_does_not_read_the_source(tiny: Path, adapter: Path) -> None:
    first = logits(load(tiny, adapter=adapter), adapted=True)
    stages: list[str] = []
    size, times = tiny.stat().st_size, (tiny.stat().st_atime_ns, tiny.stat().st_mtime_ns)
    tiny.write_bytes(b"\0" * size)
    _set_times(tiny, times)
    again = load(tiny, adapter=adapter, progress=lambda stage, done: stages.append(stage))
    assert set(stages) == {"load"}
    assert torch.equal(logits(again, adapted=True), first)


def _set_times(path: Path, times: tuple[int, int]) -> None:
    os.utime(path, ns=times)


def test_an_adapter_added_later_is_folded_then(tiny: Path, adapter: Path) -> None:
    load(tiny)
    stages: list[str] = []
    late = logits(load(tiny, adapter=adapter, progress=lambda stage, done: stages.append(stage)), adapted=True)
    assert list(dict.fromkeys(stages)) == ["read", "fold", "load"]
    shutil.rmtree(tiny.parent / "cache")
    assert torch.equal(logits(load(tiny, adapter=adapter), adapted=True), late)


def test_another_source_is_converted_anew(tiny: Path) -> None:
    first = logits(load(tiny))
    write_tiny_gguf(tiny, TinyGguf(seed=5))
    assert difference(logits(load(tiny)), first) > 0.3


@pytest.mark.parametrize("damage", ["cut", "missing", "manifest", "format"])
def test_a_damaged_conversion_is_made_again(tiny: Path, damage: str) -> None:
    first = logits(load(tiny))
    converted = tiny.parent / "cache" / "tiny-int8"
    layer, manifest = converted / "layer-001.safetensors", converted / "manifest.json"
    if damage == "cut":
        layer.write_bytes(layer.read_bytes()[:-100])
    elif damage == "missing":
        layer.unlink()
    elif damage == "manifest":
        manifest.write_text("[1, 2", encoding="utf-8")
    else:
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 0}), encoding="utf-8")
    assert torch.equal(logits(load(tiny)), first)


@pytest.mark.parametrize("name", ["layer-001.safetensors", "tokenizer.json"])
def test_a_conversion_with_the_right_sizes_and_wrong_content_is_made_again(tiny: Path, name: str) -> None:
    first = logits(load(tiny))
    file = tiny.parent / "cache" / "tiny-int8" / name
    file.write_bytes(b"\xff" * file.stat().st_size)
    assert torch.equal(logits(load(tiny)), first)


def _touched_later(file: Path) -> None:
    found = file.stat()
    _set_times(file, (found.st_atime_ns, found.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing", "header"])
@pytest.mark.parametrize("folder", ["", "adapter-*"])
def test_damaged_weights_are_never_used(tiny: Path, adapter: Path, folder: str, damage: str) -> None:
    first = logits(load(tiny, adapter=adapter), adapted=True)
    (file,) = (tiny.parent / "cache" / "tiny-int8").glob(f"{folder}/layer-001.safetensors".lstrip("/"))
    content, times = file.read_bytes(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    if damage == "flipped":
        file.write_bytes(content[:-2000] + bytes(byte ^ 0x55 for byte in content[-2000:]))
        _touched_later(file)
    elif damage == "cut":
        file.write_bytes(content[:-100])
    elif damage == "missing":
        file.unlink()
    else:
        # Nothing but the content tells: the size and the time are as they were recorded.
        file.write_bytes(b"\xff" * 64 + content[64:])
        _set_times(file, times)
    assert torch.equal(logits(load(tiny, adapter=adapter), adapted=True), first)


def test_what_is_known_of_a_conversion_without_loading_it(tiny: Path, adapter: Path) -> None:
    folder = converted_folder(tiny.parent / "cache", "tiny")
    assert converted_state(folder) == "none"
    load(tiny, adapter=adapter)
    assert converted_state(folder) == "whole"
    (folded,) = folder.glob("adapter-*/layer-000.safetensors")
    _touched_later(folded)
    assert converted_state(folder) == "changed"
    load(tiny, adapter=adapter)
    assert converted_state(folder) == "whole"
    _touched_later(folder / "layer-000.safetensors")
    assert converted_state(folder) == "changed"


def test_what_a_killed_conversion_left_is_removed(tiny: Path) -> None:
    left = tiny.parent / "cache" / ".tiny-int8-abc"
    left.mkdir(parents=True)
    (left / "layer-000.safetensors").write_bytes(b"half")
    load(tiny)
    assert not left.exists()


def test_a_conversion_appears_whole_and_leaves_nothing_else(tiny: Path, tmp_path: Path) -> None:
    done: list[float] = []
    out = tmp_path / "made" / "out"
    digest = write_tiny_gguf(tiny)
    assert not is_current(out, digest)
    convert_gguf(tiny, out, progress=done.append)
    assert is_current(out, digest)
    assert not is_current(out, "0" * 64)
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert done == sorted(done)
    assert done[-1] == 1.0
    manifest = read_manifest(out)
    assert manifest is not None
    assert (manifest.shape.layers, manifest.shape.hidden, manifest.shape.rope_theta) == (LAYERS, HIDDEN, 1e6)


def test_a_failed_conversion_leaves_the_old_one(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    digest = write_tiny_gguf(tiny)
    convert_gguf(tiny, out)
    write_tiny_gguf(tiny, TinyGguf(without=frozenset({"blk.1.ffn_up.weight"})))
    with pytest.raises(EngineError, match=r"blk\.1\.ffn_up\.weight"):
        convert_gguf(tiny, out)
    assert is_current(out, digest)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tiny.gguf"]


def test_space_is_asked_for_before_anything_is_written(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"needs 0\.07 GB in .*made, where 0\.00 GB are free") as failure:
        convert_gguf(tiny, tmp_path / "made" / "out", free=lambda _: 1000)
    assert (failure.value.kind, (tmp_path / "made").exists()) == ("no_space", False)
    assert "LACUNA_HOME" in failure.value.remedy


def test_the_space_asked_for_is_what_a_conversion_takes(tiny: Path, adapter: Path) -> None:
    load(tiny, adapter=adapter)
    manifest = read_manifest(tiny.parent / "cache" / "tiny-int8")
    assert manifest is not None
    files = [path for path in (tiny.parent / "cache").rglob("*") if path.is_file()]
    taken = sum(path.stat().st_size for path in files)
    assert taken - 100_000 < converted_bytes(manifest.shape, folded=True) - (64 << 20) < taken


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no_space"),
        (SafetensorError("I/O error: No space left on device (os error 28)"), "no_space"),
        (OSError(errno.EACCES, "Permission denied"), "internal"),
        (SafetensorError("I/O error: File too large (os error 27)"), "internal"),
        (SafetensorError("header too large"), "internal"),
    ],
)
def test_a_fault_while_writing_is_said_in_the_terms_of_its_cause(
    tmp_path: Path, fault: OSError | SafetensorError, kind: str
) -> None:
    error = write_failure(tmp_path / "out", fault)
    assert error.kind == kind
    assert str(tmp_path) in error.message
    assert "LACUNA_HOME" in error.remedy


def test_a_write_the_system_refuses_ends_clearly(tiny: Path, tmp_path: Path) -> None:
    """A limit on the size of files makes the writer of the weights fail as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, before[1]))
    try:
        with pytest.raises(EngineError, match="cannot be written"):
            convert_gguf(tiny, tmp_path / "made" / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "made").iterdir()) == []


def test_a_cache_folder_that_cannot_be_made_is_named(tiny: Path) -> None:
    (tiny.parent / "cache").write_text("not a folder")
    with pytest.raises(EngineError, match="cannot be written"):
        load(tiny)


def test_a_place_that_cannot_be_written_is_named(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EngineError, match="cannot be written") as failure:
        convert_gguf(tiny, tmp_path / "file" / "out")
    assert "LACUNA_HOME" in failure.value.remedy
