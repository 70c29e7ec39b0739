"""Who may serve at an address: the lock, and what becomes of one who holds it and answers nobody."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import psutil
import pytest

from engine.claim import MUTE_PROBES, EngineLock
from engine.config import EngineConfig
from engine.listener import Listener
from engine.probe import Found, probe
from engine.protocol.address import Address, Transport, engine_address, make_private, read_endpoint
from engine.protocol.errors import EngineError
from engine.protocol.messages import Status, StatusReport
from tests.fakes.raw_client import PATIENCE_S, raw_client, short_home
from tests.fakes.running_service import running

NOBODY = Found("absent")


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


def address_in(home: Path, transport: Transport = "auto") -> Address:
    address = engine_address("scripted", {"LACUNA_HOME": str(home)}, transport)
    make_private(address)
    return address


@contextmanager
def listening(address: Address, say: bytes | None) -> Iterator[None]:
    """Somebody in this process who hears each greeting, and says `say` to it (None: nothing, and keeps the line)."""
    listener = Listener(address)
    kept = []

    def attend() -> None:
        while True:
            try:
                line, _ = listener.socket.accept()
            except OSError:
                return
            kept.append(line)
            if say is not None:
                # What is left unread at the end of a line may take the answer with it.
                line.recv(65536)
                line.sendall(say)
                line.close()

    thread = threading.Thread(target=attend)
    thread.start()
    try:
        yield
    finally:
        listener.socket.shutdown(2)
        listener.socket.close()
        thread.join(PATIENCE_S)
        for line in kept:
            line.close()


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_probe_tells_who_lives_from_who_only_accepts(home: Path, transport: Transport) -> None:
    address = address_in(home, transport)
    assert probe(address) == NOBODY
    with listening(address, b"\0"):
        assert probe(address).state == "answers"
    with listening(address, None):
        assert probe(address, limit_s=0.05).state == "mute"
    with listening(address, b""):
        assert probe(address) == NOBODY, "one that ends the line without a word is leaving"
    assert probe(address) == NOBODY


@pytest.mark.parametrize(("said", "found"), [(b"\0", "answers"), (b"", "absent")])
def test_the_word_of_one_who_left_before_the_greeting_counts(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, found: str
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    theirs.sendall(said)
    theirs.close()
    monkeypatch.setattr("engine.probe._connect", lambda address, limit_s: ours)
    assert probe(address_in(home)).state == found


@pytest.mark.asyncio
@pytest.mark.parametrize("transport", ["unix", "tcp"])
async def test_a_probe_is_no_client_of_a_real_engine(home: Path, transport: Transport) -> None:
    config = EngineConfig(model="scripted", transport=transport)
    async with running(home, config=config) as engine:
        assert (await asyncio.to_thread(probe, engine.address)).state == "answers"
        async with raw_client(engine.address) as client:
            await client.greet(read_endpoint(engine.address.path).token if transport == "tcp" else "")
            client.send(Status())
            report = await client.receive()
            assert isinstance(report, StatusReport)
            assert report.clients == 1


def test_a_claim_waits_for_an_engine_that_is_leaving(home: Path) -> None:
    leaving = EngineLock(address_in(home))
    leaving.claim()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            leaving.release()

    waiting = EngineLock(address_in(home))
    assert waiting.claim(pause=pause) == "ours"
    assert len(pauses) == 3
    waiting.release()


def test_the_second_claim_finds_who_serves(home: Path) -> None:
    first = EngineLock(address_in(home))
    assert first.claim() == "ours"
    assert EngineLock(address_in(home), lambda _: Found("answers", 1)).claim() == "served"
    first.release()
    second = EngineLock(address_in(home))
    assert second.claim() == "ours"
    second.release()


def test_a_lock_nobody_answers_for_is_an_error_a_person_can_act_on(home: Path) -> None:
    hung = EngineLock(address_in(home))
    hung.claim()
    with pytest.raises(EngineError, match="does not answer") as caught:
        EngineLock(address_in(home)).claim(limit_s=1.0, pause=lambda _: None)
    assert "scripted" in caught.value.remedy
    hung.release()


def test_a_lock_whose_file_was_removed_is_no_right_to_serve_any_more(home: Path) -> None:
    address = address_in(home)
    first, second = EngineLock(address), EngineLock(address)
    assert not first.is_ours()
    first.claim()
    assert first.is_ours()
    address.lock.unlink()
    assert not first.is_ours()
    assert second.claim() == "ours"
    assert (first.is_ours(), second.is_ours()) == (False, True)
    second.release()
    assert not second.is_ours()
    first.release()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_lock_that_cannot_be_made_is_an_error_a_person_can_act_on(
    home: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "said by the system")

    lock = EngineLock(address_in(home))
    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(EngineError, match="said by the system") as caught:
        lock.claim()
    assert (caught.value.kind, "LACUNA_HOME" in caught.value.remedy) == ("unsafe_address", True)


# One that holds the lock and answers nobody

HOLDER = """
import sys
from engine.claim import EngineLock
from engine.listener import Listener
from engine.protocol.address import engine_address
address = engine_address("scripted", {"LACUNA_HOME": sys.argv[1]})
lock = EngineLock(address)
assert lock.claim() == "ours"
listener = Listener(address)
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock and the socket, accepts by the system's hand, and says nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "holds\n"
    yield process
    process.kill()
    process.communicate()


def looking(found: Callable[[Address], Found], seen: list[Found]) -> Callable[[Address], Found]:
    def look(address: Address) -> Found:
        seen.append(found(address))
        return seen[-1]

    return look


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell who listens")
def test_one_that_answers_nobody_is_ended_and_its_place_taken(home: Path, holder: subprocess.Popen[str]) -> None:
    seen: list[Found] = []
    lock = EngineLock(address_in(home), looking(lambda address: probe(address, limit_s=0.1), seen))
    assert lock.claim() == "ours"
    assert seen[:MUTE_PROBES] == [Found("mute", holder.pid)] * MUTE_PROBES
    assert holder.wait(PATIENCE_S) == -signal.SIGKILL
    lock.release()


@pytest.mark.skipif(sys.platform == "win32", reason="nobody can be suspended so")
def test_one_that_is_suspended_and_has_lost_its_socket_is_ended(home: Path, holder: subprocess.Popen[str]) -> None:
    address = address_in(home)
    os.kill(holder.pid, signal.SIGSTOP)
    address.path.unlink()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    lock = EngineLock(address)
    assert lock.claim(limit_s=1.0, pause=pause) == "ours"
    assert len(pauses) >= 20, "one that is leaving had its time"
    assert holder.wait(PATIENCE_S) == -signal.SIGKILL
    lock.release()


@pytest.mark.skipif(sys.platform == "win32", reason="nobody can be suspended so")
@pytest.mark.parametrize("which", [0, 1])
def test_a_clock_that_was_set_meanwhile_hides_nobody(home: Path, holder: subprocess.Popen[str], which: int) -> None:
    address = address_in(home)
    record = address.lock.with_suffix(".holder")
    pid, *began = record.read_text().split()
    began[which] = str(float(began[which]) + 3600)
    record.write_text(" ".join([pid, *began]))
    os.kill(holder.pid, signal.SIGSTOP)
    address.path.unlink()
    lock = EngineLock(address)
    assert lock.claim(limit_s=1.0) == "ours"
    assert holder.wait(PATIENCE_S) == -signal.SIGKILL
    lock.release()


@pytest.mark.parametrize(
    "record",
    [
        "",
        "no number",
        "{pid} 1.5 1.5",
        "{pid} {began}",
        "{pid} nan nan",
        "{own} {began} 1.5",
        "999999999 1.0 1.0",
        "\xff",
    ],
)
def test_a_record_that_is_not_the_holder_s_ends_nobody(home: Path, holder: subprocess.Popen[str], record: str) -> None:
    address = address_in(home)
    address.path.unlink()
    own = psutil.Process()
    text = record.format(pid=holder.pid, own=own.pid, began=own.create_time())
    address.lock.with_suffix(".holder").write_text(text, encoding="utf-8")
    with pytest.raises(EngineError, match="does not answer"):
        EngineLock(address).claim(limit_s=1.0, pause=lambda _: None)
    assert holder.poll() is None


def test_a_record_that_cannot_be_written_is_not_another_s(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = address_in(home)
    record = address.lock.with_suffix(".holder")
    record.write_text("1 1.0")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    lock = EngineLock(address)
    assert lock.claim() == "ours"
    assert not record.exists()
    lock.release()


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell who listens")
def test_a_mute_one_is_ended_for_who_wants_no_place(home: Path, holder: subprocess.Popen[str]) -> None:
    lock = EngineLock(address_in(home), lambda address: probe(address, limit_s=0.1))
    assert lock.evict() == holder.pid
    assert holder.wait(PATIENCE_S) == -signal.SIGKILL
    assert not lock.is_ours()
    assert lock.claim() == "ours", "the lock is free"
    lock.release()


def test_who_is_not_known_to_be_a_mute_engine_is_not_ended(home: Path, holder: subprocess.Popen[str]) -> None:
    mute, other = Found("mute", holder.pid), Path(f"{home}/other")
    for last in (Found("answers", holder.pid), NOBODY):
        script = iter([*[mute] * (MUTE_PROBES - 1), last])

        def look(_: Address, script: Iterator[Found] = script) -> Found:
            return next(script)

        assert EngineLock(address_in(home), look).evict() is None
    with pytest.raises(EngineError, match="does not answer"):
        EngineLock(address_in(home), lambda _: Found("mute")).evict()
    # It listens, but the lock of this address, first without a file and then free, is not its own.
    for _ in range(2):
        address = address_in(other)
        with pytest.raises(EngineError, match="does not answer"):
            EngineLock(address, lambda _: mute).evict()
        address.lock.touch()
    assert holder.poll() is None


def test_one_that_does_not_go_is_said_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = EngineLock(address_in(home))
    held.claim()
    ended: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: ended.append(pid))
    with pytest.raises(EngineError, match="does not answer"):
        EngineLock(address_in(home), lambda _: Found("mute", 4711)).evict(limit_s=1.0, pause=lambda _: None)
    assert ended == [4711]
    held.release()


def test_one_that_answers_in_time_is_not_ended(home: Path, holder: subprocess.Popen[str]) -> None:
    mute, answers = Found("mute", holder.pid), Found("answers", holder.pid)
    for last in (answers, NOBODY):
        script = iter([*[mute] * (MUTE_PROBES - 1), last, *[mute] * (MUTE_PROBES - 1), answers])

        def look(_: Address, script: Iterator[Found] = script) -> Found:
            return next(script)

        assert EngineLock(address_in(home), look).claim() == "served"
    assert holder.poll() is None


def test_where_nobody_says_who_it_is_nothing_is_ended(home: Path, holder: subprocess.Popen[str]) -> None:
    address = address_in(home)
    address.lock.with_suffix(".holder").unlink()
    lock = EngineLock(address, lambda _: Found("mute"))
    with pytest.raises(EngineError, match="does not answer"):
        lock.claim(limit_s=1.0, pause=lambda _: None)
    assert holder.poll() is None
