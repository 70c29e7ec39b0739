"""The command `lacuna`: which subcommands there are, and how their failures reach a person.

Nothing of a subcommand is imported until it runs: `lacuna --help` is quick and `lacuna lsp` never loads torch.
Exit status: 0 done, 1 it failed, 2 it was called wrongly, 130 it was interrupted.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, Any

import click

from engine.protocol.errors import EngineError

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Subcommand:
    """Where a subcommand lives, and its one line of help."""

    module: str
    attribute: str
    help: str


SUBCOMMANDS: Mapping[str, Subcommand] = MappingProxyType(
    {
        "demo": Subcommand("engine.cli.demo", "demo", "Show a fill and a rewrite on a sample project, end to end."),
        "lsp": Subcommand("engine.cli.main", "lsp", "Run the language server, as an editor does."),
        "fill": Subcommand("engine.cli.files", "fill", "Fill the holes of a file, or a position in it."),
        "rewrite": Subcommand("engine.cli.files", "rewrite", "Rewrite lines of a file by an instruction."),
        "trace": Subcommand(
            "engine.cli.trace", "trace", "Fill the holes of a file and show how, as a page that plays it."
        ),
        "models": Subcommand("engine.cli.models", "models", "List, fetch, check and remove models."),
        "engine": Subcommand("engine.cli.engine", "engine", "Run, start, stop and look at the resident engine."),
        "status": Subcommand("engine.cli.status", "status", "Say what the resident engine is doing, or show it live."),
        "doctor": Subcommand("engine.cli.doctor", "doctor", "Check this machine and say what to do about each fault."),
    }
)


class EngineFailure(click.ClickException):
    """An EngineError as a command ends with it: what happened (worded like click's own), and below what to do."""

    exit_code = 1

    def __init__(self, error: EngineError) -> None:
        super().__init__(error.message)
        self.remedy = error.remedy

    def show(self, file: IO[Any] | None = None) -> None:
        """Print both to standard error."""
        click.echo(f"Error: {self.message}", file=file or sys.stderr)
        if self.remedy:
            click.echo(f"  {self.remedy}", file=file or sys.stderr)


def system_failure(fault: OSError) -> EngineError:
    """What the operating system's refusal means to a person: which path, what happened, what to do."""
    reason = fault.strerror or str(fault) or type(fault).__name__
    full = fault.errno in (errno.ENOSPC, errno.EDQUOT)
    if fault.filename is None:
        # An open stream does not tell its name: it is the output, or a file in one of Lacuna's folders.
        remedy = "free space where the output goes and where LACUNA_HOME lies" if full else ""
        return EngineError("no_space" if full else "internal", f"reading or writing failed: {reason}", remedy)
    remedy = "check that it is yours to read and write, or set LACUNA_HOME to a folder that is"
    if full:
        remedy = "free space there, or set LACUNA_HOME to a folder on a larger disk"
    return EngineError("no_space" if full else "internal", f"{os.fsdecode(fault.filename)}: {reason}", remedy)


def _let_go_of_output() -> None:
    """Send what standard output still holds nowhere if it cannot be written: else the interpreter fails on it again."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is called, and lists all of them without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # the signature is click's
        """All names, in the order a newcomer needs them."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported now; None when there is none of that name."""
        found = SUBCOMMANDS.get(cmd_name)
        if found is None:
            return None
        command = getattr(importlib.import_module(found.module), found.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{found.module}.{found.attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in SUBCOMMANDS.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run as a program. What the system refuses is one message: also --help that cannot be printed."""
        try:
            return super().main(*args, **extra)
        except OSError as fault:
            _let_go_of_output()
            EngineFailure(system_failure(fault)).show()
            sys.exit(EngineFailure.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; the failures a person can act on become one message each, without a traceback."""
        try:
            return super().invoke(ctx)
        except EngineError as error:
            raise EngineFailure(error) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


def version() -> str:
    """The installed version, or a note that this tree is not installed."""
    from importlib import metadata

    try:
        return metadata.version("lacuna")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"lacuna {version()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and leave.",
)
def cli() -> None:
    """Lacuna fills the gaps in code with a resident, local text-diffusion engine."""


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def lsp(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Run the language server, as an editor does: over standard input and output, or --tcp HOST:PORT.

    The server reads its own options (`lacuna lsp --help`), with whatever an editor's client adds to them.
    """
    from lsp_server.__main__ import main as serve

    ctx.exit(serve(arguments))


def main(argv: Sequence[str] | None = None) -> None:
    """The console script. Leaves by SystemExit with the exit status of the module's docstring."""
    cli.main(args=None if argv is None else list(argv), prog_name="lacuna")


if __name__ == "__main__":
    main()
