"""Whoever is at the other end of the socket is asked for a user id, on both sides."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.protocol import peer
from engine.protocol.address import engine_address, make_private
from engine.protocol.errors import EngineError
from engine.protocol.framing import receive_frame
from engine.protocol.peer import peer_process, peer_uid, require_same_user
from lsp_server.engine_connection import connect
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import running

SOMEBODY = 54321


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.fixture
def as_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process believes that it is another user than the socket's other end."""
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)


def test_the_other_end_of_ones_own_pair_is_oneself() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_uid(ours) in (os.geteuid(), None)
        require_same_user(ours)


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="the system does not tell the process")
def test_a_process_is_told_of_another_one_of_this_user_only(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpid()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_process(ours) is None, "that is this process itself"
        monkeypatch.setattr(os, "getpid", lambda: own + 1)
        assert peer_process(ours) == own
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
        assert peer_process(ours) is None
    assert peer_process(ours) is None, "a closed one tells nothing"


def test_another_user_is_refused_with_a_remedy(as_somebody_else: None) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(EngineError, match="another user's") as caught:
        require_same_user(ours)
    assert (caught.value.kind, bool(caught.value.remedy)) == ("unsafe_address", True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_real_other_user_is_seen(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_uid(ours) == 0
    with short_home() as folder, socket.socket(socket.AF_UNIX) as listening:
        folder.chmod(0o755)
        path = folder / "s"
        listening.bind(str(path))
        listening.listen()
        path.chmod(0o666)
        with warnings.catch_warnings():
            # The child of a process with threads must do little, and does.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.setuid(SOMEBODY)
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(path))
                stranger.recv(1)
            os._exit(0)
        accepted, _ = listening.accept()
        with accepted:
            assert peer_uid(accepted) == SOMEBODY
            with pytest.raises(EngineError, match=str(SOMEBODY)):
                require_same_user(accepted)
            assert peer_process(accepted) is None
        os.waitpid(child, 0)


def test_on_tcp_nobody_can_say() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert peer_uid(client) is None
        require_same_user(client)


def test_the_answer_of_macos_is_understood() -> None:
    """struct xucred as XNU's sys/ucred.h lays it out; the unused groups may be missing."""
    whole = struct.pack("=IIh2x16I", 0, 501, 1, 20, *[0] * 15)
    assert peer._xucred_uid(whole) == 501
    assert peer._xucred_uid(whole[:16]) == 501


@pytest.mark.asyncio
async def test_the_engine_tells_a_stranger_no_more_than_that(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(home) as engine:
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
        reader, writer = await asyncio.open_unix_connection(engine.address.path)
        writer.write(b"")
        payload = await receive_frame(reader)
        assert payload is not None
        assert b"unsafe_address" in payload
        assert await receive_frame(reader) is None
        writer.close()
        monkeypatch.undo()


@pytest.mark.asyncio
async def test_the_client_says_nothing_to_a_stranger(home: Path, as_somebody_else: None) -> None:
    """Neither its Hello nor anything else reaches who sits at the engine's place."""
    address = engine_address("scripted", {"LACUNA_HOME": str(home)})
    make_private(address)
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result(await reader.read())
        writer.close()

    server = await asyncio.start_unix_server(impostor, address.path)
    async with server:
        with pytest.raises(EngineError, match="another user's") as caught:
            await connect(address, "test")
        assert caught.value.kind == "unsafe_address"
        assert await asyncio.wait_for(heard, 10) == b""


def _link(directory: Path) -> None:
    directory.rename(directory.parent / "moved")
    directory.symlink_to(directory.parent / "moved")


@pytest.mark.asyncio
@pytest.mark.parametrize("spoil", [lambda d: d.chmod(0o755), _link], ids=["open-to-others", "linked"])
async def test_a_folder_exchanged_under_the_client_is_refused(home: Path, spoil: Callable[[Path], None]) -> None:
    async with running(home) as engine:
        spoil(engine.address.directory)
        with pytest.raises(EngineError) as caught:
            await connect(engine.address, "test")
        assert caught.value.kind == "unsafe_address"
        if engine.address.directory.is_symlink():
            engine.address.directory.unlink()
            (home / "moved").rename(engine.address.directory)
