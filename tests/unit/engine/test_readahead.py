"""What a start asks of the system before and after loading: files read ahead, freed memory given back."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from engine.models.readahead import read_ahead
from engine.runtime.heap import trim_heap


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no hints")
def test_every_file_of_a_folder_is_asked_for_in_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b"):
        (tmp_path / name).write_bytes(b"1")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    told: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *rest: told.append(rest))
    assert read_ahead(tmp_path) == 2
    assert told == [(0, 0, os.POSIX_FADV_WILLNEED)] * 2


def test_reading_ahead_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_ahead(tmp_path / "none") == 0
    (tmp_path / "a").write_bytes(b"1")

    def refuse(*_: int) -> None:
        raise OSError("not here")

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_WILLNEED", 3, raising=False)
    assert read_ahead(tmp_path) == 0
    monkeypatch.delattr(os, "posix_fadvise")
    assert read_ahead(tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="it asks the kernel for the process's memory")
def test_freed_memory_goes_back_to_the_system() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    # Too small to be mapped on their own, so they lie in the heap; the last one keeps its end in place.
    pieces = [libc.malloc(64 << 10) for _ in range(1600)]
    for piece in pieces:
        ctypes.memset(piece, 1, 64 << 10)
    for piece in pieces[:-1]:
        libc.free(piece)
    held = _anonymous_bytes()
    assert trim_heap()
    assert held - _anonymous_bytes() > 50 << 20
    libc.free(pieces[-1])


def _anonymous_bytes() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) << 10


def test_a_system_that_cannot_give_memory_back_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not trim_heap()
