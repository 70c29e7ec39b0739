"""Where an engine is found, and which places are refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from engine.protocol.address import (
    MAX_SOCKET_PATH_BYTES,
    Address,
    Endpoint,
    engine_address,
    make_private,
    read_endpoint,
    require_private,
    same_token,
    write_endpoint,
)
from engine.protocol.errors import EngineError
from engine.protocol.messages import PROTOCOL_VERSION

NAME = f"tiny-v{PROTOCOL_VERSION}"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("env", "directory"),
    [
        ({"LACUNA_HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/7"}, Path("/h/run")),
        ({"LACUNA_HOME": "", "XDG_RUNTIME_DIR": "/run/user/7"}, Path("/run/user/7/lacuna")),
        ({}, Path("/tmp") / f"lacuna-{os.getuid()}"),
    ],
)
def test_the_folder_follows_the_environment(env: dict[str, str], directory: Path) -> None:
    found = engine_address("tiny", env)
    assert found == Address("tiny", "unix", directory, directory / f"{NAME}.sock", directory / f"{NAME}.lock")


def test_a_long_folder_gets_a_short_socket_of_its_own() -> None:
    homes = [f"/{'x' * 120}/{n}" for n in "ab"]
    paths = [engine_address("tiny", {"LACUNA_HOME": home}).path for home in homes]
    assert paths[0] != paths[1]
    for home, path in zip(homes, paths, strict=True):
        assert path.parent == Path("/tmp") / f"lacuna-{os.getuid()}"
        assert len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES
        assert engine_address("tiny", {"LACUNA_HOME": home}).lock.is_relative_to(home)


def test_tcp_can_be_forced() -> None:
    found = engine_address("tiny", {"LACUNA_HOME": "/h"}, "tcp")
    assert (found.transport, found.path) == ("tcp", Path(f"/h/run/{NAME}.json"))


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", "a b", "-x", "a..b", "x" * 65, "a\n", "é"])
def test_a_name_cannot_leave_the_folder(name: str) -> None:
    with pytest.raises(EngineError, match="no model name") as caught:
        engine_address(name, {})
    assert caught.value.kind == "bad_request"


def test_folders_are_made_for_their_user_only(tmp_path: Path) -> None:
    address = engine_address("tiny", {"LACUNA_HOME": str(tmp_path / "new" / "home")})
    make_private(address)
    make_private(address)
    assert mode_of(address.lock.parent) == 0o700
    assert mode_of(address.directory) == 0o700


def _refused(directory: Path) -> EngineError:
    with pytest.raises(EngineError) as caught:
        require_private(directory)
    assert caught.value.kind == "unsafe_address"
    assert str(directory) in caught.value.message
    assert "LACUNA_HOME" in caught.value.remedy
    return caught.value


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "real")
    assert "real folder" in _refused(tmp_path / "run").message
    with pytest.raises(EngineError, match="real folder"):
        make_private(engine_address("tiny", {"LACUNA_HOME": str(tmp_path)}, "tcp"))


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(EngineError, match="cannot be made"):
        make_private(engine_address("tiny", {"LACUNA_HOME": str(tmp_path)}, "tcp"))


@pytest.mark.parametrize("mode", [0o750, 0o707, 0o701])
def test_a_folder_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    assert f"{mode:04o}" in _refused(folder).message


def test_somebody_elses_folder_is_refused() -> None:
    """`/` when the tests run as a user, and a folder given away when they run as root."""
    if os.getuid():
        assert "another user" in _refused(Path("/")).message
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 12345, -1)
        assert "another user" in _refused(Path(folder)).message


def test_no_folder_is_no_engine(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        require_private(tmp_path / "none")


def test_an_endpoint_is_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    for port in (1, 2):
        write_endpoint(path, Endpoint(PROTOCOL_VERSION, port, "secret"))
    assert mode_of(path) == 0o600
    assert read_endpoint(path) == Endpoint(PROTOCOL_VERSION, 2, "secret")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"protocol": 1, "port": "1", "token": "x"}', "{} {}", "\ud83d"])
def test_a_file_that_is_no_endpoint_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    path.chmod(0o600)
    with pytest.raises(EngineError, match="port and token"):
        read_endpoint(path)


def test_an_endpoint_others_could_read_or_plant_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    write_endpoint(path, Endpoint(PROTOCOL_VERSION, 1, "secret"))
    path.chmod(0o644)
    with pytest.raises(EngineError, match="open to others"):
        read_endpoint(path)
    path.chmod(0o600)
    (tmp_path / "link.json").symlink_to(path)
    with pytest.raises(EngineError, match="not a plain file"):
        read_endpoint(tmp_path / "link.json")


def test_tokens_are_compared_whole() -> None:
    assert same_token("geheim", "geheim")
    for offered in ("", "geheim2", "geheiM", "ge"):
        assert not same_token("geheim", offered)


def test_the_place_for_short_paths_does_not_depend_on_room_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_home = str(tmp_path / ("long" * 30))

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    env = {"LACUNA_HOME": long_home, "TMPDIR": str(tmp_path)}
    before = engine_address("m", env)
    monkeypatch.setattr(os, "open", full)
    assert engine_address("m", env) == before
    assert engine_address("m", {"LACUNA_HOME": long_home, "TMPDIR": "/no/such/folder"}).directory.parent == Path("/tmp")
