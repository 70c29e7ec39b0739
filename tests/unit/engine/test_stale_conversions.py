"""Converted weights that something whole has replaced are removed; what is in use or another's stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import filelock
import pytest
import torch

from engine.models.folder_record import FORMAT, converted_folder, converted_state
from engine.models.loading import load_denoiser
from engine.models.stale import remove_replaced
from tests.fakes.tiny_loading import load, logits
from tests.fakes.tiny_model import TinyGguf, write_tiny_gguf

HERE, BEFORE = "0123456789abcdef", "f" * 16


def converted(cache: Path, name: str, format_of: int = FORMAT) -> Path:
    folder = converted_folder(cache, name)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"format": format_of, "files": {}}), encoding="utf-8")
    return folder


def test_folded_weights_of_another_adapter_go_when_new_ones_are_folded(tiny: Path, adapter: Path) -> None:
    load(tiny)
    out = converted_folder(tiny.parent / "cache", "tiny")
    old = out / "adapter-0000"
    old.mkdir()
    load(tiny)
    assert old.is_dir(), "nothing was made, so nothing was replaced"
    load(tiny, adapter=adapter)
    assert [folder.name for folder in out.iterdir() if folder.is_dir()] != []
    assert not old.exists()
    assert converted_state(out) == "whole"


def test_the_same_weights_in_an_earlier_format_go_and_in_this_or_a_later_one_stay(tmp_path: Path) -> None:
    out = converted(tmp_path, "tiny")
    old, unsaid = converted(tmp_path, "q", FORMAT - 1), converted_folder(tmp_path, "damaged")
    unsaid.mkdir()
    kept = [out, converted(tmp_path, "same"), converted(tmp_path, "later", FORMAT + 1)]
    remove_replaced(out, "tiny")
    assert not old.exists()
    assert not unsaid.exists()
    assert all(folder.is_dir() for folder in kept)
    assert not list(tmp_path.glob(".*"))


def test_weights_that_the_name_stood_for_before_go(tmp_path: Path) -> None:
    out = converted(tmp_path / f"tiny-{HERE}", "tiny")
    old = converted(tmp_path / f"tiny-{BEFORE}", "tiny")
    kept = [converted(tmp_path / f"tiny-{kind}-{BEFORE}", "tiny") for kind in ("large", "small")] + [
        converted(tmp_path / "tiny-coder", "tiny"),
        converted(tmp_path / f"other-{BEFORE}", "other"),
    ]
    remove_replaced(out, "tiny")
    assert not old.parent.exists()
    assert all(folder.is_dir() for folder in [out, *kept])


def test_where_a_folder_is_no_content_s_own_its_neighbours_stay(tmp_path: Path) -> None:
    out, other = converted(tmp_path / "cache", "tiny"), converted(tmp_path / f"tiny-{BEFORE}", "tiny")
    remove_replaced(out, "tiny")
    assert other.is_dir()


@pytest.mark.parametrize("place", ["beside", "before"])
def test_what_is_loaded_or_written_at_this_moment_stays(tmp_path: Path, place: str) -> None:
    out = converted(tmp_path / f"tiny-{HERE}", "tiny")
    cache, name = (out.parent, "q") if place == "beside" else (tmp_path / f"tiny-{BEFORE}", "tiny")
    old = converted(cache, name, FORMAT - 1)
    with filelock.FileLock(old.with_name(f"{old.name}.lock")):
        remove_replaced(out, "tiny")
        assert old.is_dir()
    remove_replaced(out, "tiny")
    assert not old.exists()


def test_an_engine_goes_on_with_weights_that_were_removed_under_it(tiny: Path) -> None:
    running = load_denoiser(tiny, tiny.parent / f"tiny-{BEFORE}", name="tiny", adapter=None, threads=1)
    before = logits(running)
    write_tiny_gguf(tiny, TinyGguf(seed=5))
    load_denoiser(tiny, tiny.parent / f"tiny-{HERE}", name="tiny", adapter=None, threads=1)
    assert not (tiny.parent / f"tiny-{BEFORE}").exists()
    assert torch.equal(logits(running), before)
    shutil.rmtree(tiny.parent / f"tiny-{HERE}")
