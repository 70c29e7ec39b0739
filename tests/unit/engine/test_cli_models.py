"""`lacuna models` as a person or a script meets it: words, streams and exit statuses."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from engine.cli.main import cli
from engine.cli.models import after_interrupt
from engine.cli.pull_lines import PullLines
from engine.cli.pull_view import Bars, PlainLines, counted, shown_pull
from engine.store import PullProgress, Store
from engine.store.sources import Fetch
from tests.fakes.model_sources import (
    CONTENT,
    FILE,
    NAME,
    FailingSource,
    GoodSource,
    small_entry,
    small_store,
)


class CtrlC:
    """A source during which the person presses Ctrl-C."""

    label = "slow"
    copies = 1

    def fetch(self, job: Fetch) -> None:
        job.part.write_bytes(CONTENT[:10])
        signal.raise_signal(signal.SIGINT)


class Terminated(CtrlC):
    """A source during which the process is asked to end."""

    def fetch(self, job: Fetch) -> None:
        job.part.write_bytes(CONTENT[:10])
        signal.raise_signal(signal.SIGTERM)


def lacuna(store: Store, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["models", *arguments], obj=store)


def listed(store: Store) -> dict[str, Any]:
    (row,) = json.loads(lacuna(store, "list", "--json").stdout)["models"]
    return dict(row)


def test_list_says_what_is_here(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    assert listed(store)["status"] == "not here"
    store.pull(NAME)
    row = listed(store)
    assert (row["name"], row["default"], row["status"], row["size"]) == (NAME, True, "here", len(CONTENT))
    store.shelf(NAME).stamp(small_entry().files[0]).unlink()
    assert listed(store)["status"] == "unchecked"


def lines_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_pull_for_programs_ends_with_where_the_model_is(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path, [GoodSource()]), "pull", "--json")
    *progress, last = lines_of(result)
    assert (result.exit_code, last) == (0, {"event": "done", "path": str(tmp_path / "models" / NAME / FILE)})
    assert progress
    assert all(line["event"] == "progress" and 0 <= line["done"] <= len(CONTENT) for line in progress)
    assert any("downloading small.gguf" in line["message"] and line["total"] == len(CONTENT) for line in progress)


def test_a_pull_for_programs_that_fails_says_what_to_do(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path, [FailingSource()]), "pull", "--json")
    last = lines_of(result)[-1]
    assert result.exit_code == 1
    assert last["event"] == "error"
    assert last["message"]
    assert last["remedy"]


@pytest.mark.usefixtures("heard_interrupts")
def test_a_pull_for_programs_that_is_interrupted_says_so(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path, [CtrlC()]), "pull", "--json")
    assert result.exit_code == 130
    last = lines_of(result)[-1]
    assert (last["event"], last["message"]) == ("error", "interrupted")
    assert "goes on" in last["remedy"]


def test_lines_for_programs_are_thinned_out_but_sentences_are_not() -> None:
    said: list[str] = []
    now = [0.0]
    lines = PullLines(said.append, lambda: now[0])
    for count in range(100):
        lines(PullProgress("downloading", "hub", "", count, 100))
        now[0] += 0.01
    assert 9 <= len(said) <= 11
    before = len(said)
    for _ in range(3):
        lines(PullProgress("verifying", "hub", "verifying"))
    assert len(said) == before + 3


def test_list_for_people_names_models_and_the_default(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path, entry=small_entry(loadable=False)), "list")
    assert result.exit_code == 0
    (row,) = [line for line in result.stdout.splitlines() if line.startswith(NAME)]
    assert "later" in row
    assert f"The default is {NAME}" in result.stdout


def test_pull_prints_only_the_path_as_its_answer(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path, [GoodSource()]), "pull")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'models' / NAME / FILE}\n")
    assert "downloading small.gguf from good" in result.stderr
    assert f"{NAME} is ready" in result.stderr


def test_pull_from_a_path(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(CONTENT)
    store = small_store(tmp_path / "home", [FailingSource()])
    assert lacuna(store, "pull", NAME, "--from", str(tmp_path)).exit_code == 0
    assert store.path(NAME).read_bytes() == CONTENT


def test_a_failed_pull_says_cause_and_remedy_without_a_traceback(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path, [FailingSource()]), "pull", NAME)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Error: {NAME} could not be fetched. failing: no route." in result.stderr
    assert "--from PATH" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.parametrize("source", [CtrlC(), Terminated()])
def test_an_interrupted_pull_is_clean(tmp_path: Path, source: CtrlC) -> None:
    before = signal.getsignal(signal.SIGTERM)
    result = lacuna(small_store(tmp_path, [source, GoodSource()]), "pull", NAME)
    assert result.exit_code == 130
    assert f"`lacuna models pull {NAME}` goes on" in result.stderr
    assert not list(tmp_path.rglob(f"{FILE}*"))
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupted_copy_says_that_it_begins_again() -> None:
    assert after_interrupt(NAME, Path("/usb")) == f"`lacuna models pull {NAME} --from /usb` copies the file again"
    assert "goes on from what has arrived" in after_interrupt(NAME, None)


def test_an_unknown_name_offers_the_closest(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path), "pull", "smal-model")
    assert result.exit_code == 1
    assert f"Did you mean {NAME}?" in result.stderr


@pytest.mark.parametrize("command", ["pull", "verify", "path"])
def test_a_model_of_a_later_version_is_refused_plainly(tmp_path: Path, command: str) -> None:
    result = lacuna(small_store(tmp_path, entry=small_entry(loadable=False)), command, NAME)
    assert result.exit_code == 1
    assert "later version" in result.stderr or "is not on this machine" in result.stderr


def test_verify_finds_and_removes_a_damaged_file(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    file = store.pull(NAME)
    assert lacuna(store, "verify").stdout == f"{NAME}: every file is right\n"
    file.write_bytes(b"x" * len(CONTENT))
    result = lacuna(store, "verify", NAME)
    assert (result.exit_code, file.exists()) == (1, False)
    assert "has been removed" in result.stderr


def test_path_of_a_missing_model_is_a_failure(tmp_path: Path) -> None:
    result = lacuna(small_store(tmp_path), "path")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"lacuna models pull {NAME}" in result.stderr


def test_remove_says_what_it_freed(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    assert "nothing was here" in lacuna(store, "remove", NAME).stdout
    store.pull(NAME)
    assert "MB freed" in lacuna(store, "remove", NAME).stdout
    assert not store.shelf(NAME).path.exists()


def test_add_refuses_what_is_not_weights(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not weights")
    result = lacuna(small_store(tmp_path / "home"), "add", str(tmp_path / "notes.txt"), "--name", "mine")
    assert result.exit_code == 1
    assert "is not a GGUF file" in result.stderr


def test_add_needs_a_name(tmp_path: Path) -> None:
    assert lacuna(small_store(tmp_path), "add", str(tmp_path)).exit_code == 2


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with shown_pull(console) as view:
        assert isinstance(view, Bars)
        view(PullProgress("downloading", "hub", "downloading it", 0, 2_000_000))
        view(PullProgress("downloading", "hub", "", 1_000_000, 2_000_000, 5e5, 2.0))
        view(PullProgress("verifying", "", "checking it", 10, 2_000_000))
    assert "downloading it" in screen.getvalue()
    assert "checking it" in screen.getvalue()
    assert "MB" in screen.getvalue()


def test_elsewhere_counts_come_now_and_then() -> None:
    lines, times = io.StringIO(), iter([0.0, 1.0, 2.0, 7.0, 7.0])
    view = PlainLines(Console(file=lines), lambda: next(times))
    view(PullProgress("downloading", "hub", "downloading it", 0, 2_000_000))
    view(PullProgress("downloading", "hub", "", 500_000, 2_000_000))
    view(PullProgress("downloading", "hub", "", 1_000_000, 2_000_000, 5e5, 2.0))
    assert lines.getvalue() == "downloading it\n  1 of 2 MB, 0.5 MB/s, 2 s left\n"


def test_a_count_leaves_out_what_is_not_known() -> None:
    assert counted(PullProgress("downloading", "hub", "", 3_000_000)) == "3 MB"
