"""The command group `lacuna models`: the model store for people and scripts.

Answers go to standard output, progress and faults to standard error. All rules are the store's.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli.pull_lines import PullLines
from engine.cli.pull_view import shown_pull
from engine.cli.table_console import table_console
from engine.protocol.errors import EngineError
from engine.store import Entry, PullProgress, Store

INTERRUPTED = 130


@click.group()
@click.pass_context
def models(ctx: click.Context) -> None:
    """List, fetch, check and remove models."""
    if ctx.obj is None:
        ctx.obj = Store.of_user(os.environ)


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: `models`.")
@click.pass_obj
def list_models(store: Store, as_json: bool) -> None:
    """List all models known by name, and which of them are here."""
    rows = [describe(store, entry) for entry in store.entries()]
    if as_json:
        click.echo(json.dumps({"models": rows}, indent=2))
    else:
        _print_table(rows, store.default)


@models.command()
@click.argument("name", required=False)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    help="Take the file from this path (the file, or a folder that holds it) and from nowhere else.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line: progress, then done or error.")
@click.pass_context
def pull(ctx: click.Context, name: str | None, source: Path | None, as_json: bool) -> None:
    """Fetch a model (the default one, if NAME is left out) and check it.

    A pull that was interrupted goes on from what has arrived; a copy with --from begins again.
    """
    store: Store = ctx.obj
    wanted = name or store.default
    lines = PullLines(click.echo) if as_json else None
    try:
        with _terminated_like_interrupted(), nullcontext(lines) if lines else shown_pull(Console(stderr=True)) as view:
            path = store.pull(wanted, progress=view, source=source)
    except KeyboardInterrupt:
        later = after_interrupt(wanted, source)
        if lines is not None:
            lines.error("interrupted", later)
        click.echo(f"interrupted; {later}", err=True)
        ctx.exit(INTERRUPTED)
    except EngineError as error:
        if lines is not None:
            lines.error(error.message, error.remedy)
        raise
    if lines is not None:
        lines.done(path)
    else:
        click.echo(path)


@models.command()
@click.argument("name", required=False)
@click.pass_obj
def verify(store: Store, name: str | None) -> None:
    """Read a model's files again and compare their digests; a wrong file that was fetched is removed."""
    wanted = name or store.default
    with shown_pull(Console(stderr=True)) as view:
        store.verify(wanted, _as_progress(store.find(wanted), view))
    click.echo(f"{wanted}: every file is right")


@models.command()
@click.argument("name")
@click.pass_obj
def remove(store: Store, name: str) -> None:
    """Delete a model from this machine. Weights that were added in place stay where they are."""
    freed = store.remove(name)
    click.echo(f"{name}: {freed / 1e6:.0f} MB freed" if freed else f"{name}: nothing was here to delete")


@models.command()
@click.argument("name", required=False)
@click.pass_obj
def path(store: Store, name: str | None) -> None:
    """Print where a model's checked file (or folder) lies."""
    click.echo(store.path(name or store.default))


@models.command()
@click.argument("location", metavar="PATH", type=click.Path(exists=True, path_type=Path))
@click.option("--name", required=True, help="What the model is called from now on.")
@click.pass_obj
def add(store: Store, location: Path, name: str) -> None:
    """Make a GGUF file or a folder of safetensors known by a name; it stays where it is."""
    entry = store.add(location, name)
    later = "" if entry.loadable else "; no family of this version loads it"
    click.echo(f"{entry.name}: added, family {entry.family}{later}")


def after_interrupt(name: str, source: Path | None) -> str:
    """What a person who interrupted a pull can do: only a download keeps what has arrived."""
    if source is None:
        return f"`lacuna models pull {name}` goes on from what has arrived"
    return f"`lacuna models pull {name} --from {source}` copies the file again"


def describe(store: Store, entry: Entry) -> dict[str, object]:
    """An entry as `models list --json` prints it. Sizes in bytes, null where not known."""
    return {
        "name": entry.name,
        "default": entry.name == store.default,
        "family": entry.family,
        "description": entry.description,
        "licence": entry.licence,
        "repository": entry.repository,
        "context_tokens": entry.context_tokens,
        "size": entry.size,
        "loadable": entry.loadable,
        "status": status_of(store, entry),
        "files": [{"name": file.name, "size": file.size, "sha256": file.sha256} for file in entry.files],
        "settings": dict(entry.settings),
    }


def status_of(store: Store, entry: Entry) -> str:
    """`here`, `unchecked` (here, read whole before its next use), `not here`, or `later` (not loadable yet)."""
    if not entry.loadable:
        return "later"
    shelf = store.shelf(entry.name)
    if not entry.files:
        return "not here"
    if all(shelf.stamped(file) for file in entry.files):
        return "here"
    return "unchecked" if all(shelf.file(file).is_file() for file in entry.files) else "not here"


def _print_table(rows: list[dict[str, object]], default: str) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("Name", "Status", "Size"):
        table.add_column(heading, no_wrap=True)
    table.add_column("What it is, and its licence", overflow="fold")
    for row in rows:
        size = row["size"]
        weight = f"{size / 1e6:.0f} MB" if isinstance(size, int) else ""
        about = escape(f"{row['description']} ({row['licence']})")
        table.add_row(str(row["name"]), str(row["status"]), weight, about)
    console = table_console()
    console.print(table)
    console.print(
        "\nhere: pulled and checked; unchecked: here, read whole at its next use; not here: to be pulled; "
        f"later: a later version loads it.\nThe default is {default}: `lacuna models pull` fetches it.",
        soft_wrap=True,
    )


def _as_progress(entry: Entry, view: Callable[[PullProgress], None]) -> Callable[[int], None]:
    return lambda done: view(PullProgress("verifying", "", "", done, entry.size or 0))


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let a termination signal unwind like Ctrl-C does, so that the downloader's process ends with this one."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
