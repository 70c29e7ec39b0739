"""The root command: what it lists, what it loads, and how it fails."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from engine.cli.main import SUBCOMMANDS, cli

NAMES = {"demo", "lsp", "fill", "rewrite", "models", "engine", "doctor"}


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


def test_version_is_one_line() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert (result.exit_code, result.stdout.split()[0], result.stdout.count("\n")) == (0, "lacuna", 1)


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
