"""The root command: what it lists, what it loads, and how it fails."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.cli.main import SUBCOMMANDS, cli, system_failure
from engine.config import DEFAULT_MODEL

NAMES = {"demo", "lsp", "fill", "rewrite", "trace", "models", "engine", "status", "doctor"}


def loaded_after(code: str) -> set[str]:
    """Names of the modules a fresh interpreter has loaded after `code`."""
    script = f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_help_lists_every_subcommand_and_loads_none() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert set(SUBCOMMANDS) == NAMES
    assert all(f"  {name} " in result.stdout for name in NAMES)


def test_importing_the_root_loads_nothing_heavy() -> None:
    loaded = loaded_after("import engine.cli.main")
    assert not loaded & {"torch", "transformers", "pygls", "rich", "huggingface_hub", "engine.store", "lsp_server"}


def test_the_model_store_is_quick_to_load() -> None:
    loaded = loaded_after("import engine.cli.models, engine.cli.doctor")
    assert not loaded & {"torch", "transformers", "pygls", "huggingface_hub"}


def test_what_a_trace_refuses_is_refused_before_torch_is_loaded() -> None:
    assert not loaded_after("import engine.cli.trace, engine.watchable") & {"torch", "transformers"}


def test_version_is_one_line() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert (result.exit_code, result.stdout.split()[0], result.stdout.count("\n")) == (0, "lacuna", 1)


@pytest.mark.parametrize("arguments", [["models", "list"], ["--version"], ["--help"], ["doctor", "--json"]])
def test_output_that_cannot_be_written_is_one_message(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "engine.cli.main", *arguments]
    environ = {**os.environ, "LACUNA_HOME": str(tmp_path)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environ, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Error: reading or writing failed: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("arguments", [["models", "remove", DEFAULT_MODEL], ["models", "add", ".", "--name", "mine"]])
def test_what_the_system_refuses_is_one_message_with_the_path(tmp_path: Path, arguments: list[str]) -> None:
    home = tmp_path / "home"
    home.write_text("a file where a folder should be")
    result = CliRunner().invoke(cli, arguments, env={"LACUNA_HOME": str(home)})
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("fault", "kind", "message", "remedy"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/h/x"), "internal", "/h/x: Permission denied", "yours"),
        (OSError(errno.ENOSPC, "No space left on device", b"/h/x"), "no_space", "/h/x: No space", "free space"),
        (OSError(errno.ENOSPC, "No space left on device"), "no_space", "reading or writing failed: No", "free space"),
        (OSError("odd"), "internal", "reading or writing failed: odd", ""),
    ],
)
def test_a_refusal_says_path_cause_and_remedy(fault: OSError, kind: str, message: str, remedy: str) -> None:
    error = system_failure(fault)
    assert error.kind == kind
    assert error.message.startswith(message)
    assert remedy in error.remedy


def test_wrong_calls_and_failures_are_worded_alike(tmp_path: Path) -> None:
    calls = (["modles"], ["models", "path", "no-such-model"])
    results = [CliRunner().invoke(cli, call, env={"LACUNA_HOME": str(tmp_path)}) for call in calls]
    assert [result.exit_code for result in results] == [2, 1]
    assert all("\nError: " in f"\n{result.stderr}" for result in results)


def test_an_unknown_command_is_a_wrong_call() -> None:
    assert CliRunner().invoke(cli, ["modles"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [(["--help"], 0, "--tcp HOST:PORT"), (["--no-such-option"], 2, "--no-such-option"), (["--tcp", "x"], 2, "--tcp")],
)
def test_the_server_reads_its_own_options(arguments: list[str], status: int, says: str) -> None:
    result = CliRunner().invoke(cli, ["lsp", *arguments])
    assert result.exit_code == status
    assert says in result.output
