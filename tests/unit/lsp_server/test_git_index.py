"""Which paths an index holds: indexes written by git itself in every version, and some that are broken."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.git_index import LARGEST_BYTES, LARGEST_SPELLED_BYTES, GitIndexes, holds
from tests.fakes.git import git

PATHS = (
    *(
        "a.py",
        "a.pyx",
        "a/b.py",
        "a/b/c.py",
        "a/bc.py",
        "z/long" + "g" * 200,
        "z/long" + "g" * 201,
        "\u00e9/\U0001f642.py",
    ),
    *(f"many/{number:04}" for number in range(300)),
    "deep/" + "/".join(["d" * 200] * 21),
)
OTHERS = ("b.py", "a", "a/b", "a/b.p", "b/c.py", "a/b.py/x", "many/0300", "many/", "ny/0001")


def index_of(root: Path, version: int, *, ids: str = "sha1") -> bytes:
    """What git writes when it is told to track `PATHS`."""
    git(root, "init", "-q", f"--object-format={ids}")
    blob = git(root, "hash-object", "-w", "--stdin").strip()
    lines = "".join(f"100644 {blob}\t{path}\0" for path in PATHS)
    git(root, "update-index", "-z", "--index-info", text=lines)
    if version == 3:
        # Only entries with more flags make git write version 3.
        git(root, "update-index", "--skip-worktree", "a/b.py")
    git(root, "update-index", "--index-version", str(version))
    data = (root / ".git/index").read_bytes()
    assert data[4:8] == version.to_bytes(4, "big")
    return data


@pytest.mark.parametrize(("version", "ids"), [(2, "sha1"), (3, "sha1"), (4, "sha1"), (2, "sha256"), (4, "sha256")])
def test_an_index_of_git_holds_what_git_tracks(tmp_path: Path, version: int, ids: str) -> None:
    data = index_of(tmp_path, version, ids=ids)
    assert {path for path in PATHS if holds(data, path.encode())} == set(PATHS)
    assert not [path for path in OTHERS if holds(data, path.encode())]


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    data = index_of(tmp_path, 4)
    for broken in (b"", b"DIRC", data[:70], data[:2000], b"TREE" + data[4:], data[:7] + b"\5" + data[8:]):
        with pytest.raises(ValueError, match=r"index|entry"):
            holds(broken, b"zz")


@given(st.binary(max_size=200), st.sampled_from([2, 3, 4]), st.integers(0, 5))
def test_any_bytes_are_an_index_or_a_value_error(noise: bytes, version: int, count: int) -> None:
    head = b"DIRC" + version.to_bytes(4, "big") + count.to_bytes(4, "big")
    with contextlib.suppress(ValueError):
        assert holds(head + noise, noise[-2:]) in (True, False)


def test_what_was_found_holds_until_the_file_changes(tmp_path: Path) -> None:
    index_of(tmp_path, 2)
    index, indexes = tmp_path / ".git/index", GitIndexes()
    assert indexes.tracks(index, "a.py")
    assert not indexes.tracks(index, "new.py")
    (tmp_path / "new.py").touch()
    git(tmp_path, "add", "new.py")
    assert indexes.tracks(index, "new.py")
    index.unlink()
    assert not indexes.tracks(index, "a.py")


@pytest.mark.parametrize(("version", "most"), [(2, LARGEST_BYTES), (4, LARGEST_SPELLED_BYTES)])
def test_what_is_too_large_to_be_looked_through_tracks_nothing(tmp_path: Path, version: int, most: int) -> None:
    index_of(tmp_path, version)
    index = tmp_path / ".git/index"
    os.truncate(index, most)
    assert GitIndexes().tracks(index, "a.py")
    os.truncate(index, most + 1)
    assert not GitIndexes().tracks(index, "a.py")


def test_a_name_inside_another_or_inside_a_file_s_facts_is_none(tmp_path: Path) -> None:
    data = index_of(tmp_path, 2)
    place = data.index(b"a.py\0")
    assert holds(data, b"a.py")
    for offset, fact in ((-2, b"\x00\x07"), (-38, b"\x00\x00\x40\x00")):
        broken = data[: place + offset] + fact + data[place + offset + len(fact) :]
        assert not holds(broken, b"a.py")
