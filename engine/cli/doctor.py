"""The command `lacuna doctor`: look at this machine, print what was found and what to do about each fault.

Looks, and changes nothing but the stamp of a model file it had to read. What the facts mean is `checkup`'s.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from engine.cli.checkup import Check, Engine, EngineState, Folder, Machine, Model, ModelState, Package, examine
from engine.cli.table_console import table_console
from engine.models.folder_record import converted_folder, converted_state
from engine.probe import probe
from engine.protocol.address import Address, engine_address, read_endpoint, require_private
from engine.protocol.errors import EngineError
from engine.runtime.extension import kernel_names
from engine.store import Store

CPU_FACTS = Path("/proc/cpuinfo")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check this machine and say what to do about each fault.

    Exit status 1 when something would stop Lacuna from working.
    """
    look: Callable[[], Machine] = ctx.obj or (lambda: observe(os.environ))
    checks = examine(look())
    healthy = all(check.verdict != "fault" for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": healthy, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        _print(checks)
    ctx.exit(0 if healthy else 1)


def observe(environ: Mapping[str, str]) -> Machine:
    """Look at this machine. Raises EngineError when the registry of added models cannot be read."""
    import psutil

    store = Store.of_user(environ)
    packages = tuple(_packages())
    log = _log_path(store.default, environ)
    major, minor, micro = sys.version_info[:3]
    return Machine(
        python=(major, minor, micro),
        executable=sys.executable,
        installed=bool(packages),
        packages=packages or (_package("torch"),),
        system=sys.platform,
        architecture=platform.machine(),
        kernel=next(iter(kernel_names()), None),
        cpu_flags=cpu_flags(CPU_FACTS),
        cores=_usable_cores(),
        memory_free=int(psutil.virtual_memory().available),
        disk_free=shutil.disk_usage(_nearest(store.paths.models)).free,
        folders=tuple(
            look_at_folder(purpose, path)
            for purpose, path in (
                ("models folder", store.paths.models),
                ("cache folder", store.paths.cache),
                ("log folder", log.parent),
            )
        ),
        model=look_at_model(store),
        engine=look_at_engine(store.default, environ),
        log=log,
        log_exists=log.is_file(),
    )


def look_at_folder(purpose: str, path: Path) -> Folder:
    """Whether `path` can be written, or made where it is not there yet. Makes nothing."""
    nearest = _nearest(path)
    if not nearest.is_dir():
        return Folder(purpose, path, False, obstacle=nearest)
    return Folder(purpose, path, os.access(nearest, os.W_OK | os.X_OK))


def look_at_model(store: Store) -> Model:
    """The default model's files, judged by digest; nothing is removed, whatever they are."""
    shelf = store.shelf(store.default)
    converted = converted_state(converted_folder(store.converted_dir(store.default), store.default))
    return Model(store.default, shelf.path, shelf.entry.size, _model_state(store), converted)


def _model_state(store: Store) -> ModelState:
    shelf = store.shelf(store.default)
    try:
        states = {shelf.state(file) for file in shelf.entry.files}
    except OSError:
        return "unreadable"
    if "missing" in states:
        return "absent"
    return "damaged" if "wrong" in states else "ready"


def look_at_engine(model: str, environ: Mapping[str, str]) -> Engine:
    """Whether an engine answers where it should, and whether its folder is only this user's."""
    try:
        address = engine_address(model, environ)
    except EngineError as error:
        return Engine(Path(), "unsafe", error.message, error.remedy)
    try:
        # Where the path of the socket would be too long it lies elsewhere, and the lock alone in the home's folder.
        for directory in (address.lock.parent, address.directory):
            require_private(directory)
        _require_socket(address)
        found = probe(address)
        state: EngineState = "left_over" if found.state == "absent" else found.state
        return Engine(address.path, state, pid=found.pid)
    except FileNotFoundError:
        return Engine(address.path, "none")
    except EngineError as error:
        return Engine(address.path, "unsafe", error.message, error.remedy)
    except OSError as fault:
        remedy = "Set LACUNA_HOME to a folder that only you can enter."
        return Engine(address.path, "unsafe", f"{directory} cannot be entered ({fault.strerror})", remedy)


def _require_socket(address: Address) -> None:
    """Raise EngineError(unsafe_address) for a path the engine would not replace, OSError where there is none."""
    if address.transport == "unix" and not stat.S_ISSOCK(address.path.lstat().st_mode):
        fault = f"{address.path} is in the way and no engine left it"
        raise EngineError("unsafe_address", fault, "Look at it and remove it: the engine does not start beside it.")
    if address.transport == "tcp":
        read_endpoint(address.path)


def cpu_flags(facts: Path) -> frozenset[str]:
    """The processor's feature flags as Linux lists them; empty where there is no such file."""
    try:
        lines = facts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))


def _packages() -> Iterator[Package]:
    """What the installed Lacuna requires; nothing when it is not installed."""
    try:
        required = metadata.requires("lacuna") or []
    except metadata.PackageNotFoundError:
        return
    for requirement in required:
        if "extra ==" not in requirement:
            yield _package(requirement)


def _package(requirement: str) -> Package:
    from packaging.requirements import Requirement

    wanted = Requirement(requirement)
    try:
        installed = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return Package(wanted.name, requirement, None, False)
    return Package(wanted.name, requirement, installed, wanted.specifier.contains(installed, prereleases=True))


def _usable_cores() -> int:
    """Cores this process may run on, which a container or `taskset` can make fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _log_path(model: str, environ: Mapping[str, str]) -> Path:
    from lsp_server.engine_spawn import log_path

    return log_path(model, environ)


def _nearest(path: Path) -> Path:
    """`path`, or the folder above it that exists: where it would be made."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


_MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "fault": "[red]fault[/]"}


def _print(checks: tuple[Check, ...]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        table.add_row(_MARKS[check.verdict], check.subject, escape(check.finding))
        if check.remedy:
            table.add_row("", "", f"[bold]{escape(check.remedy)}[/]")
    table_console().print(table)
    faults = sum(check.verdict == "fault" for check in checks)
    click.echo(f"{faults} fault{'s' if faults != 1 else ''} to put right" if faults else "Lacuna can work here")
