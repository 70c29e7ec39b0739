"""Downloaders in child processes: watched, stopped, and their complaints understood."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.store.child_process import Watched, bytes_below, failure_in, run_watched
from engine.store.progress import Cause, PullInterruptedError, SourceError, SpeedMeter

GROWING = (
    "import pathlib, sys; pathlib.Path(sys.argv[1], 'file').write_bytes(b'x' * 1000); input_closed = sys.stdin.read()"
)
WAITING = "import pathlib, sys, threading; pathlib.Path(sys.argv[1], 'started').touch(); threading.Event().wait()"


def watched(tmp_path: Path, script: str) -> Watched:
    folder = tmp_path / "growing"
    folder.mkdir()
    command = [sys.executable, "-c", script, str(folder)]
    return Watched(command, os.environ, tmp_path, [folder], tmp_path / "log")


def test_a_child_that_ends_well_is_done(tmp_path: Path) -> None:
    job = watched(tmp_path, GROWING)
    run_watched(job, lambda _: None, threading.Event())
    assert (tmp_path / "growing" / "file").stat().st_size == 1000


def test_growth_is_reported(tmp_path: Path) -> None:
    counts: list[int] = []
    run_watched(watched(tmp_path, GROWING), counts.append, threading.Event())
    assert counts[-1] == 1000


def test_a_cancelled_child_is_ended_before_the_call_returns(tmp_path: Path) -> None:
    script = WAITING.replace("'started').touch()", "'started').write_text(str(__import__('os').getpid()))")
    cancel, started = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        job = watched(tmp_path, script)
        running = pool.submit(run_watched, job, lambda done: started.set() if done else None, cancel)
        assert started.wait(10)
        cancel.set()
        with pytest.raises(PullInterruptedError):
            running.result(10)
    pid = (tmp_path / "growing" / "started").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_child_that_writes_nothing_for_too_long_is_ended(tmp_path: Path) -> None:
    hours = iter(range(0, 360_000, 3600))
    with pytest.raises(SourceError, match="nothing arrived for 90 s") as caught:
        run_watched(watched(tmp_path, WAITING), lambda _: None, threading.Event(), clock=lambda: next(hours))
    assert caught.value.cause == "no_network"


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    script = "import sys; print('ERROR: it is broken', file=sys.stderr); sys.exit(3)"
    with pytest.raises(SourceError, match="ERROR: it is broken") as caught:
        run_watched(watched(tmp_path, script), lambda _: None, threading.Event())
    assert caught.value.cause == "failed"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("WARNING: Retrying after NewConnectionError\nERROR: No matching distribution found for a", "no_network"),
        ("ERROR: Could not find a version\nERROR: No matching distribution found for a==1", "not_found"),
        ("OSError: [Errno 28] No space left on device", "no_space"),
        ("/usr/bin/python: No module named pip", "failed"),
        ("httpx.ConnectTimeout: timed out", "no_network"),
        ("", "failed"),
    ],
)
def test_complaints_are_understood(log: str, cause: Cause) -> None:
    assert failure_in(log).cause == cause


def test_counting_survives_what_vanishes_meanwhile(tmp_path: Path) -> None:
    """Another process tidies up while this one counts: no error, and what stays is counted."""
    (tmp_path / "stays").write_bytes(b"12345")
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            (tmp_path / "a" / "b").mkdir(parents=True)
            (tmp_path / "a" / "b" / "empty").touch()
            shutil.rmtree(tmp_path / "a")

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(come_and_go)
        counts = {bytes_below(tmp_path) for _ in range(500)}
        done.set()
        coming.result(10)
    assert counts == {5}


def test_speed_is_that_of_the_last_seconds() -> None:
    times = iter([0.0, 1.0, 2.0, 12.0, 13.0])
    meter = SpeedMeter(lambda: next(times))
    assert [meter.speed(done) for done in (0, 100, 200, 200)] == [0.0, 100.0, 100.0, 0.0]
    meter.restart()
    assert meter.speed(50) == 0.0


def test_children_have_no_terminal_to_ask_on(tmp_path: Path) -> None:
    """A child that would ask for a password must fail instead of waiting: its input is empty."""
    begun = time.monotonic()
    run_watched(watched(tmp_path, "import sys; sys.exit(len(sys.stdin.read()))"), lambda _: None, threading.Event())
    assert time.monotonic() - begun < 10
