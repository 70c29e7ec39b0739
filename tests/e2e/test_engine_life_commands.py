"""`python -m engine run|start|stop|status` in real processes: words and exit statuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.config import DEFAULT_MODEL
from engine.protocol.address import engine_address
from tests.fakes.raw_client import PATIENCE_S, short_home

MODEL = ["--model", "scripted"]


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


def command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", *arguments],
        env={**os.environ, "LACUNA_HOME": str(home), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        # A stop of one that does not answer takes all its probes.
        timeout=4 * PATIENCE_S,
        check=False,
    )


@contextmanager
def daemon(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A scripted engine that serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.scripted_core", *MODEL],
        env={**os.environ, "LACUNA_HOME": str(home)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        while "ready after" not in (line := process.stderr.readline()):
            assert line, "the engine left"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_engine_that_is_not_running_is_said_plainly(home: Path) -> None:
    said = command(home, "status")
    assert said.returncode == 3
    assert f"No engine for {DEFAULT_MODEL} is running" in said.stdout
    as_json = command(home, "status", "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)) == (3, {"running": False, "model": DEFAULT_MODEL})
    stopped = command(home, "stop")
    assert (stopped.returncode, stopped.stdout) == (0, f"The engine for {DEFAULT_MODEL} is not running.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not suspended so there")
def test_an_engine_that_is_suspended_is_said_to_be_and_is_ended(home: Path) -> None:
    with daemon(home) as process:
        process.send_signal(signal.SIGSTOP)
        said = command(home, "status", *MODEL)
        assert said.returncode == 4
        assert f"The engine for scripted runs (process {process.pid}) but does not answer" in said.stdout
        stopped = command(home, "stop", *MODEL)
        assert (stopped.returncode, stopped.stdout) == (
            0,
            f"The engine for scripted did not answer; its process {process.pid} was ended.\n",
        )
        assert process.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_running_engine_is_reported_found_and_stopped(home: Path) -> None:
    with daemon(home) as process:
        report = json.loads(command(home, "status", "--json", *MODEL).stdout)
        assert (report["running"], report["state"], report["facts"]["pid"]) == (True, "ready", process.pid)
        metrics = command(home, "status", "--prometheus", *MODEL)
        assert (metrics.returncode, "lacuna_ready 1.0\n" in metrics.stdout) == (0, True)
        table = command(home, "status", *MODEL)
        assert table.returncode == 0
        assert "30 min" in table.stdout
        started = command(home, "start", *MODEL)
        assert started.returncode == 0
        assert f"is already running (cpu, fp32, process {process.pid})" in started.stdout
        assert started.stderr == ""
        changed = command(home, "start", "--threads", "1", "--no-adapter", *MODEL)
        assert (changed.returncode, changed.stdout) == (0, started.stdout)
        assert changed.stderr.startswith(
            "--threads 1 --no-adapter do not apply to the one that runs: `lacuna engine stop`"
        )
        ran = command(home, "run", *MODEL)
        assert (ran.returncode, ran.stderr) == (0, "an engine for scripted is already running\n")
        stopped = command(home, "stop", *MODEL)
        assert (stopped.returncode, stopped.stdout) == (0, "The engine for scripted has left.\n")
        assert process.wait(PATIENCE_S) == 0
    assert not engine_address("scripted", {"LACUNA_HOME": str(home)}).path.exists()


@pytest.mark.usefixtures("heard_interrupts")
def test_status_is_a_command_of_its_own_and_is_shown_live(home: Path) -> None:
    watching = [sys.executable, "-m", "engine.cli.main", "status", "--watch", "--every", "0.1", *MODEL]
    env = {**os.environ, "LACUNA_HOME": str(home), "COLUMNS": "100", "FORCE_COLOR": "1", "TERM": "xterm"}
    with daemon(home) as process, subprocess.Popen(watching, env=env, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        seen = ""
        while f"{process.pid}" not in seen:
            line = watch.stdout.readline()
            assert line, seen
            seen += line
        assert "\x1b[?1049h" in seen, "on a screen of its own"
        process.kill()
        process.wait(PATIENCE_S)
        # An engine that left is waited for.
        while "No engine for scripted is running" not in (line := watch.stdout.readline()):
            assert line
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["status", "--model", "two words"], 1, "is no model name"),
        (["run", "--model", "two words"], 1, "is no model name"),
        (["run", "--model", "./no/such/model"], 1, "/no/such/model does not exist"),
        (["run", "--threads", "many"], 2, "--threads must be a number"),
        (["start", "--transport", "pigeon"], 2, "--transport must be one of"),
        (["run", "--diffusion-share", "101"], 2, "--diffusion-share must be at most 100"),
        (["run", "--metrics-port", "70000"], 2, "--metrics-port must be at most 65535"),
        (["status", "--json", "--watch"], 2, "choose one of"),
    ],
)
def test_wrong_usage_is_named(home: Path, arguments: list[str], status: int, says: str) -> None:
    said = command(home, *arguments)
    assert said.returncode == status
    assert says in said.stderr
    assert "Traceback" not in said.stderr


def test_a_folder_that_cannot_be_trusted_is_said_with_a_remedy(home: Path) -> None:
    (home / "run").mkdir()
    (home / "run").chmod(0o755)
    for name in ("status", "stop", "start"):
        said = command(home, name, *MODEL)
        assert said.returncode == 1
        assert "is open to others" in said.stderr
        assert "LACUNA_HOME" in said.stderr
