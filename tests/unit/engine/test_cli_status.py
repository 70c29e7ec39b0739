"""`lacuna status` and `lacuna engine ...` as they are called: what is said, where, and with which exit status."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import engine.cli.status
from engine.cli.main import cli
from engine.config import DEFAULT_MODEL, EngineConfig
from engine.protocol.messages import StatusReport
from engine.team.access import TokenBook
from lsp_server.engine_connection import EngineMute

REPORT = StatusReport("ready", None, 60.0, 1.0, 1800.0, 2, 1, 20, 1, 2, 900.0)
MUTE = EngineMute("the engine runs but does not answer", 4711)


def lacuna(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"LACUNA_HOME": str(home)})


def seeing(monkeypatch: pytest.MonkeyPatch, *seen: StatusReport | EngineMute | None) -> Iterator[object]:
    """The engine is seen so, one look after the other."""
    looks = iter(seen)

    async def read_status(_: EngineConfig) -> StatusReport | None:
        found = next(looks)
        if isinstance(found, EngineMute):
            raise found
        return found

    monkeypatch.setattr(engine.cli.status, "read_status", read_status)
    return looks


def test_an_engine_that_does_not_answer_is_not_called_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeing(monkeypatch, MUTE, MUTE, MUTE)
    plain = lacuna(tmp_path, "status")
    assert plain.exit_code == 4
    assert " ".join(plain.stdout.split()).startswith(
        f"The engine for {DEFAULT_MODEL} runs (process 4711) but does not answer"
    )
    as_json = lacuna(tmp_path, "status", "--json")
    told = {"running": True, "model": DEFAULT_MODEL, "state": "mute", "pid": 4711}
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (4, told)
    metrics = lacuna(tmp_path, "status", "--prometheus")
    assert (metrics.exit_code, "process 4711" in metrics.stderr) == (4, True)
    assert [line for line in metrics.stdout.splitlines() if line[0] != "#"] == ["lacuna_up 0.0", "lacuna_ready 0.0"]


def test_the_exit_statuses_are_in_the_help(tmp_path: Path) -> None:
    said = " ".join(lacuna(tmp_path, "status", "--help").stdout.split())
    assert "Exit status 3 when none is running, 4 when one runs but does not answer" in said


def test_what_runs_is_up_and_what_does_not_has_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeing(monkeypatch, REPORT, None)
    metrics = lacuna(tmp_path, "status", "--prometheus")
    assert (metrics.exit_code, "lacuna_up 1.0\nlacuna_ready 1.0\n" in _values(metrics.stdout)) == (0, True)
    absent = lacuna(tmp_path, "status", "--prometheus")
    assert (absent.exit_code, absent.stdout, "is running" in absent.stderr) == (3, "", True)


def _values(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("#"))


def test_watching_without_a_terminal_prints_one_report_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = seeing(monkeypatch, REPORT, MUTE, None)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", pause)
    said = lacuna(tmp_path, "status", "--watch", "--every", "7")
    assert (said.exit_code, next(looks, "all"), pauses) == (0, "all", [7.0, 7.0, 7.0])
    report, mute, none = (said.stdout.index(words) for words in ("1 running", "does not answer", "No engine for"))
    assert report < mute < none


@pytest.mark.parametrize("command", [["status"], ["status", "--watch"], ["status", "--json"], ["engine", "stop"]])
def test_a_model_that_nobody_knows_is_said_so(tmp_path: Path, command: list[str]) -> None:
    said = lacuna(tmp_path, *command, "--model", "nope")
    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr.startswith("Error: There is no model called 'nope'.")
    assert "lacuna models list" in said.stderr


def test_a_model_that_is_known_and_not_fetched_is_just_not_running(tmp_path: Path) -> None:
    said = lacuna(tmp_path, "engine", "stop")
    assert (said.exit_code, said.stdout) == (0, f"The engine for {DEFAULT_MODEL} is not running.\n")
    assert lacuna(tmp_path, "status").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["engine", "run", "--log-level", "foo"], "--log-level"),
        (["status", "--watch", "--every", "nan"], "--every"),
        (["status", "--watch", "--every", "inf"], "--every"),
        (["status", "--watch", "--every", "1e300"], "--every"),
        (["engine", "serve", "--ray", "--tokens", "t", "--cpus", "nan"], "--cpus"),
        (["engine", "serve", "--ray", "--tokens", "t", "--gpus", "nan"], "--gpus"),
        (["engine", "serve", "--ray", "--tokens", "t", "--gpus", "inf"], "--gpus"),
        (["engine", "serve", "--ray", "--tokens", "t", "--metrics-port", "9"], "No such option"),
        (["engine", "serve", "--ray", "--tokens", "t", "--idle-limit-s", "9"], "No such option"),
    ],
)
def test_wrong_usage_is_no_traceback(tmp_path: Path, arguments: list[str], says: str) -> None:
    said = lacuna(tmp_path, *arguments)
    assert (said.exit_code, isinstance(said.exception, SystemExit)) == (2, True)
    assert says in said.stderr


def test_the_environment_is_named_where_options_are_looked_up(tmp_path: Path) -> None:
    said = " ".join(lacuna(tmp_path, "engine", "run", "--help").stdout.split())
    assert "LACUNA_CACHE_MIB" in said
    assert "engines that editors start" in said


# Tokens


def test_a_second_token_is_said_to_be_one(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    first, bob, second, third = (
        lacuna(tmp_path, "engine", "token", user, "--tokens", str(tokens)) for user in ("ada", "bob", "ada", "ada")
    )
    assert (first.stderr, bob.stderr) == ("", "")
    assert second.stderr.startswith("ada had a token already: both are valid.")
    assert third.stderr.startswith("ada had 2 tokens already: all of them are valid.")
    book = TokenBook.parse(tokens.read_text())
    assert [book.user_of(made.stdout.strip()) for made in (first, bob, second)] == ["ada", "bob", "ada"]


def test_a_token_is_added_below_a_last_line_that_has_no_end(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    first = lacuna(tmp_path, "engine", "token", "ada", "--tokens", str(tokens))
    tokens.write_text(tokens.read_text().rstrip("\n"))
    second = lacuna(tmp_path, "engine", "token", "bob", "--tokens", str(tokens))
    book = TokenBook.parse(tokens.read_text())
    assert [book.user_of(made.stdout.strip()) for made in (first, second)] == ["ada", "bob"]


def test_what_makes_a_tokens_file_is_said_whole(tmp_path: Path) -> None:
    said = lacuna(tmp_path, "engine", "serve", "--ray", "--tokens", f"{tmp_path}/no such file")
    assert said.exit_code == 1
    assert f"`lacuna engine token USER --tokens '{tmp_path}/no such file'`" in said.stderr
