"""What earlier protocol versions left in the run folder: gone once nobody lives there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import filelock
import pytest

from engine.leftovers import remove_leftovers
from engine.protocol.address import Address, engine_address, make_private, paths_of
from engine.protocol.messages import PROTOCOL_VERSION

EARLIER = PROTOCOL_VERSION - 1


@pytest.fixture
def address(tmp_path: Path) -> Address:
    found = engine_address("tiny", {"LACUNA_HOME": str(tmp_path / "h")})
    make_private(found)
    return found


def left(address: Address, *names: str) -> list[Path]:
    paths = [address.lock.parent / name for name in names]
    for path in paths:
        path.touch()
    return paths


def test_files_of_earlier_versions_go_and_others_stay(address: Address) -> None:
    old = left(address, f"tiny-v{EARLIER}.lock", f"tiny-v{EARLIER}.sock", "other-v1.json", "some-name-v2-v1.lock")
    kept = left(address, f"other-v{PROTOCOL_VERSION}.lock", f"tiny-v{PROTOCOL_VERSION + 1}.sock", "note.txt", "v1.lock")
    remove_leftovers(address)
    assert [path.name for path in old if path.exists()] == []
    assert all(path.exists() for path in kept)
    assert sorted(address.lock.parent.iterdir()) == sorted(kept)


def test_an_engine_that_lives_keeps_its_files(address: Address) -> None:
    lock, socket = left(address, f"tiny-v{EARLIER}.lock", f"tiny-v{EARLIER}.sock")
    with filelock.FileLock(lock, timeout=0):
        remove_leftovers(address)
        assert lock.exists()
        assert socket.exists()
    remove_leftovers(address)
    assert not socket.exists()


def test_a_socket_under_a_short_name_goes_as_well(address: Address) -> None:
    (lock,) = left(address, f"tiny-v{EARLIER}.lock")
    *_, short = paths_of(lock.with_suffix(""), address)
    short.touch()
    remove_leftovers(address)
    assert not short.exists()


def test_what_cannot_be_removed_stays(address: Address) -> None:
    folder = address.lock.parent / f"tiny-v{EARLIER}.sock"
    folder.mkdir()
    remove_leftovers(address)
    assert folder.is_dir()
