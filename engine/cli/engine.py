"""`lacuna engine run|start|stop|status`: the resident engine, by hand. (`serve` and `token` are in `team`.)

Owns words and exit statuses only. Exit status 0: done; 1: it failed and the reason was said; 2: wrong usage. (`status`
is in its own file, which says how one that does not answer is told from none.)
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from engine.cli.engine_options import (
    address_of,
    address_options,
    engine_options,
    own_options,
    read_options,
    require_known,
    say_failure,
)
from engine.cli.status import read_status, status
from engine.cli.team import serve, token
from engine.config import EngineConfig
from engine.protocol.errors import EngineError
from engine.runtime.environment import prepare_environment

if TYPE_CHECKING:
    from engine.protocol.messages import Facts, Loading

NOT_RUNNING_WORDS = "is not running"
# So often one that is heard of again, just when it was to be ended, is asked to leave.
_ATTEMPTS = 3

LOG_LEVELS = ("debug", "info", "warning", "error")


@click.group(commands=[status, serve, token])
def engine() -> None:
    """The resident engine: it holds the model and serves every editor of this user."""


@engine.command()
@address_options
@engine_options
@own_options
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    default="info",
    help="No level logs document text. [info]",
)
def run(log_level: str, **options: object) -> None:
    """Run the engine in this terminal until it is stopped or idle.

    Every option but --log-level can be set in the environment as LACUNA_OPTION (--cache-mib as LACUNA_CACHE_MIB), which
    holds for engines that editors start too.
    """
    from engine.serving import serve as serve_until_left

    config = read_options(options)
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    sys.exit(serve_until_left(config, _core_factory(config)))


@engine.command()
@address_options
@engine_options
@own_options
def start(**options: object) -> None:
    """Start the engine in the background and wait until it serves.

    Options as for `run`; they can be set in the environment too (see there).
    """
    config = read_options(options)
    try:
        facts, was_running = asyncio.run(_start(config, _run_arguments(options)))
    except EngineError as error:
        say_failure(error)
    word = "is already running" if was_running else "is ready"
    click.echo(f"The engine for {facts.model} {word} ({facts.device}, {facts.precision}, process {facts.pid}).")
    if was_running and (ignored := _ignored(options)):
        apply = "does not apply" if len(ignored) == 1 else "do not apply"
        click.echo(
            f"{' '.join(ignored)} {apply} to the one that runs: `lacuna engine stop` it first, then start it.", err=True
        )


@engine.command()
@address_options
def stop(**options: object) -> None:
    """Ask the engine to leave, and wait until it has. One that does not answer is ended."""
    config = read_options(options)
    try:
        said = _stop(config)
        if said == NOT_RUNNING_WORDS:
            require_known(config)
    except EngineError as error:
        say_failure(error)
    click.echo(f"The engine for {config.model} {said}.")


def _core_factory(config: EngineConfig) -> Callable[[Callable[[str, float], None]], Any]:
    def load(progress: Callable[[str, float], None]) -> Any:
        prepare_environment(os.environ)
        _read_ahead(config.model)
        # torch is imported here, on the loop's thread, when the socket is already answering.
        from engine.startup import load_core

        return load_core(config, progress)

    return load


def _read_ahead(model: str) -> None:
    from engine.models.folder_record import converted_folder
    from engine.models.readahead import read_ahead
    from engine.store import Store

    # A model given by its path may not have been looked at yet; loading says what is wrong with any of them.
    with suppress(EngineError, OSError):
        read_ahead(converted_folder(Store.of_user(os.environ).converted_dir(model), model))


def _run_arguments(options: dict[str, object]) -> list[str]:
    """The options that were given, spelled for `engine run`."""
    arguments: list[str] = []
    for name, value in options.items():
        if name == "adapter" and value is not None:
            arguments.append("--adapter" if value else "--no-adapter")
        elif value is not None and name != "model":
            arguments += [f"--{name.replace('_', '-')}", str(value)]
    return arguments


def _ignored(options: dict[str, object]) -> list[str]:
    """The options given that say how an engine is to be, not which one is meant."""
    return _run_arguments({name: value for name, value in options.items() if name not in ("model", "transport")})


async def _start(config: EngineConfig, arguments: list[str]) -> tuple[Facts, bool]:
    from lsp_server.engine_client import EngineProcess
    from lsp_server.engine_connection import EngineMute
    from lsp_server.engine_spawn import engine_command

    try:
        was_running = await read_status(config) is not None
    except EngineMute:
        # The one that is started ends it.
        was_running = False
    command = [*engine_command(config.model), *arguments]
    process = EngineProcess(config.model, client="lacuna-start", command=command, transport=config.transport)
    try:
        with _LoadingLine() as line:
            process.on_loading(line.show)
            return await process.ready(), was_running
    finally:
        await process.close()


def _stop(config: EngineConfig) -> str:
    """Have the engine leave, or end one that does not answer; what became of it, in words. Raises EngineError."""
    from engine.claim import EngineLock
    from lsp_server.engine_connection import EngineGone, EngineMute

    for _ in range(_ATTEMPTS):
        try:
            asyncio.run(_ask_to_leave(config))
        except EngineMute:
            if (pid := EngineLock(address_of(config)).evict()) is not None:
                return f"did not answer; its process {pid} was ended"
            # It came to itself, or left, while it was looked at: ask again.
        except EngineGone:
            return NOT_RUNNING_WORDS
        else:
            return "has left"
    raise EngineError(
        "internal", f"the engine for {config.model} answers, but does not leave", "try again when its jobs are done"
    )


async def _ask_to_leave(config: EngineConfig) -> None:
    """Raises EngineGone where nobody serves, EngineMute where one does and does not answer, EngineError."""
    from engine.claim import LEAVING_LIMIT_S
    from lsp_server.engine_connection import EngineMute, connect

    connection = await connect(address_of(config), "lacuna-stop")
    try:
        # Twice what it takes at most for its jobs: it was suspended between the greeting and this.
        async with asyncio.timeout(2 * LEAVING_LIMIT_S):
            await connection.shutdown()
    except TimeoutError:
        raise EngineMute("the engine does not leave") from None
    finally:
        await connection.close()


class _LoadingLine:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("starting", total=1.0)

    def __enter__(self) -> _LoadingLine:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, loading: Loading) -> None:
        self._progress.update(self._task, description=loading.stage, completed=loading.fraction)
