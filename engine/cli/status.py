"""`lacuna status`, which is `lacuna engine status` too: what the resident engine is doing, once or as it works.

Owns words and exit statuses only. Exit status 0: it was said; 1: it failed and the reason was said; 2: wrong usage;
3: no engine is running; 4: one runs and does not answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from engine.cli.engine_options import FiniteRange, address_of, address_options, read_options, require_known, say_failure
from engine.config import EngineConfig
from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from engine.protocol.messages import StatusReport
    from lsp_server.engine_connection import EngineMute

NOT_RUNNING, MUTE = 3, 4


@click.command()
@address_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--prometheus", "as_prometheus", is_flag=True, help="Print Prometheus text.")
@click.option("--watch", is_flag=True, help="Show it live until Ctrl-C; not on a terminal, again and again.")
@click.option("--every", type=FiniteRange(0.1, 86400), default=1.0, help="With --watch: seconds between looks. [1]")
def status(as_json: bool, as_prometheus: bool, watch: bool, every: float, **options: object) -> None:
    """Say what the engine is doing.

    Exit status 3 when none is running, 4 when one runs but does not answer (it is suspended, or hangs).
    """
    if as_json + as_prometheus + watch > 1:
        raise click.UsageError("choose one of --json, --prometheus and --watch")
    config = read_options(options)
    try:
        if watch:
            with suppress(KeyboardInterrupt):
                _watch(config, every)
            return
        seen = _look(config)
        if seen is None:
            require_known(config)
    except EngineError as error:
        say_failure(error)
    if as_json:
        _print_json(config.model, seen)
    elif as_prometheus:
        _print_prometheus(config.model, seen)
    else:
        _console().print(_view(config.model, seen))
    sys.exit(_exit_status(seen))


async def read_status(config: EngineConfig) -> StatusReport | None:
    """What the engine says of itself, None where none runs. Raises EngineMute where one is silent, EngineError."""
    from lsp_server.engine_connection import EngineGone, EngineMute, connect

    try:
        connection = await connect(address_of(config), "lacuna-status")
        try:
            return await connection.status()
        finally:
            await connection.close()
    except EngineMute:
        raise
    except EngineGone:
        return None


def mute_words(model: str, mute: EngineMute) -> str:
    """What a person is told of an engine that does not answer."""
    process = f" (process {mute.pid})" if mute.pid is not None else ""
    return f"The engine for {model} runs{process} but does not answer: it is suspended, or hangs."


def _look(config: EngineConfig) -> StatusReport | EngineMute | None:
    from lsp_server.engine_connection import EngineMute

    try:
        return asyncio.run(read_status(config))
    except EngineMute as mute:
        return mute


def _exit_status(seen: StatusReport | EngineMute | None) -> int:
    if seen is None:
        return NOT_RUNNING
    return MUTE if isinstance(seen, EngineError) else 0


def _not_running(model: str) -> str:
    return f"No engine for {model} is running. It starts when an editor needs it, or by `lacuna engine start`."


def _print_json(model: str, seen: StatusReport | EngineMute | None) -> None:
    state: dict[str, object] = {"running": seen is not None, "model": model}
    if isinstance(seen, EngineError):
        state |= {"state": "mute", "pid": seen.pid}
    elif seen is not None:
        state |= asdict(seen)
    click.echo(json.dumps(state))


def _print_prometheus(model: str, seen: StatusReport | EngineMute | None) -> None:
    from engine.prometheus import prometheus_text

    if seen is None:
        click.echo(_not_running(model), err=True)
        return
    if isinstance(seen, EngineError):
        click.echo(mute_words(model, seen), err=True)
        seen = None
    click.echo(prometheus_text(seen), nl=False)


def _view(model: str, seen: StatusReport | EngineMute | None) -> RenderableType:
    from engine.cli.status_view import status_view

    return _words(model, seen) if seen is None or isinstance(seen, EngineError) else status_view(model, seen)


def _words(model: str, seen: EngineMute | None) -> RenderableType:
    from rich.text import Text

    if seen is None:
        return Text(_not_running(model))
    return Text(f"{mute_words(model, seen)} `lacuna engine stop` ends it; the next that is needed does too.")


def _console() -> Console:
    from rich.console import Console

    return Console()


def _watch(config: EngineConfig, every: float) -> None:
    """Look again and again; an engine that has left is waited for, and so is one whose model is known."""
    from rich.live import Live
    from rich.text import Text

    from engine.cli.watch_view import watch_view

    console = _console()
    seen = _look(config)
    if seen is None:
        require_known(config)
    if not console.is_terminal or console.is_dumb_terminal:
        while True:
            console.print(_view(config.model, seen))
            time.sleep(every)
            seen = _look(config)
    with Live(Text(""), console=console, screen=True, auto_refresh=False) as live:
        while True:
            if seen is None or isinstance(seen, EngineError):
                live.update(_words(config.model, seen), refresh=True)
            else:
                live.update(watch_view(config.model, seen, console.height), refresh=True)
            time.sleep(every)
            seen = _look(config)
