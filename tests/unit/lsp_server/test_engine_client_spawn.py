"""Starting a detached process: its log, its surroundings, and what is read from it when it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import psutil
import pytest

from engine.protocol.errors import EngineError
from engine.protocol.last_words import write_last_words
from lsp_server.engine_spawn import MAX_LOG_BYTES, EngineChild, engine_command, log_path, spawn

PATIENCE_S = 20.0


def env_of(home: Path) -> dict[str, str]:
    return {**os.environ, "LACUNA_HOME": str(home)}


def run(program: str, home: Path) -> EngineChild:
    return ended(spawn([sys.executable, "-c", program], "m", env_of(home)))


def ended(child: EngineChild) -> EngineChild:
    """`child` when it has left. Its status is all it has, so that is asked for again and again."""
    limit = time.monotonic() + PATIENCE_S
    while child.exit_status() is None:
        assert time.monotonic() < limit, "the child does not end"
        time.sleep(0.005)
    return child


def log_of(home: Path) -> Path:
    return log_path("m", {"LACUNA_HOME": str(home)})


def test_what_it_says_goes_to_the_log_and_its_status_is_kept(tmp_path: Path) -> None:
    child = run("import sys; print('out', flush=True); sys.exit('err')", tmp_path)
    assert child.exit_status() == 1
    assert log_of(tmp_path).read_text() == "out\nerr\n"
    assert "err" in child.failure().message


def test_each_failure_is_read_from_its_own_part_of_the_log(tmp_path: Path) -> None:
    first = run("import sys; sys.exit('first')", tmp_path)
    silent = run("import sys; sys.exit(3)", tmp_path)
    assert "first" in first.failure().message
    assert "status 3 before it served: it wrote nothing" in silent.failure().message


def test_it_has_no_input_its_own_session_and_holds_no_folder(tmp_path: Path) -> None:
    program = "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid(), os.getcwd())"
    run(program, tmp_path)
    assert log_of(tmp_path).read_text() == f"'' True {tmp_path.anchor}\n"


def test_a_relative_home_means_the_same_folder_to_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("import os; print(os.environ['LACUNA_HOME'])", Path("relative"))
    assert log_of(tmp_path / "relative").read_text() == f"{tmp_path / 'relative'}\n"


def test_a_large_log_is_put_aside(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.parent.mkdir()
    log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    run("print('new')", tmp_path)
    assert log.read_text() == "new\n"
    assert log.with_suffix(".log.1").stat().st_size == MAX_LOG_BYTES + 1


def test_where_no_log_can_be_written_it_starts_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    child = run("import sys; sys.exit(4)", tmp_path)
    assert "status 4" in child.failure().message


def test_without_a_log_of_its_own_it_has_no_last_words(tmp_path: Path) -> None:
    words = write_last_words(EngineError("model_missing", "an earlier run's words", "pull"))
    log = log_of(tmp_path)
    # A folder in the place of the log is what nobody can append to, not even the superuser; the words lie where
    # a child with a log would be looked up.
    log.mkdir(parents=True)
    child = run("import sys; sys.exit(4)", tmp_path)
    log.rmdir()
    log.write_text(f"{words}\n")
    failure = child.failure()
    assert failure.kind == "internal"
    assert "status 4" in failure.message
    assert f"log in {log.parent} could not be written" in failure.message
    assert "writable" in failure.remedy


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
@pytest.mark.parametrize(
    ("number", "kind", "says"),
    [(9, "out_of_memory", "when memory runs out"), (11, "internal", "crashed before it served .SIGSEGV.")],
)
def test_one_that_a_signal_ended_is_said_so_with_a_remedy(tmp_path: Path, number: int, kind: str, says: str) -> None:
    failure = run(f"import os; os.kill(os.getpid(), {number})", tmp_path).failure()
    assert failure.kind == kind
    assert re.search(says, failure.message)
    assert "lacuna doctor" in failure.remedy


def test_what_cannot_be_run_is_an_error_a_person_can_act_on(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be started") as caught:
        spawn([str(tmp_path / "none")], "m", env_of(tmp_path))
    assert "lacuna doctor" in caught.value.remedy


def test_letting_go_neither_ends_it_nor_warns(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    kept = EngineChild(sleeper, tmp_path / "log", 0)
    process = psutil.Process(sleeper.pid)
    pipe = sleeper.stdin
    assert pipe is not None
    kept.let_go()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del kept, sleeper
    assert warned == []
    assert process.is_running()
    pipe.close()
    process.wait(PATIENCE_S)


def test_a_folder_named_engine_where_the_editor_was_started_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("")
    (tmp_path / "engine" / "__main__.py").write_text("print('hijacked')")
    monkeypatch.chdir(tmp_path)
    ended(spawn([*engine_command("m"), "--help"], "m", env_of(tmp_path / "home")))
    said = log_of(tmp_path / "home").read_text()
    assert "hijacked" not in said
    assert "Run the engine in this terminal" in said
