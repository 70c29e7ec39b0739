"""`lacuna status`, which is `lacuna engine status` too: what the resident engine is doing, once or as it works.

Owns words and exit statuses only. Exit status 0: it was said; 1: it failed and the reason was said; 2: wrong usage;
3: no engine is running.
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

from engine.cli.engine_options import address_of, address_options, read_options, say_failure
from engine.config import EngineConfig
from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    from engine.protocol.messages import StatusReport

NOT_RUNNING = 3


@click.command()
@address_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--prometheus", "as_prometheus", is_flag=True, help="Print Prometheus text.")
@click.option("--watch", is_flag=True, help="Show it live until Ctrl-C.")
@click.option("--every", type=click.FloatRange(0.1), default=1.0, help="With --watch: seconds between looks. [1]")
def status(as_json: bool, as_prometheus: bool, watch: bool, every: float, **options: object) -> None:
    """Say what the engine is doing. Exit status 3 when none is running."""
    if as_json + as_prometheus + watch > 1:
        raise click.UsageError("choose one of --json, --prometheus and --watch")
    config = read_options(options)
    try:
        if watch:
            with suppress(KeyboardInterrupt):
                _watch(config, every)
            return
        report = asyncio.run(read_status(config))
    except EngineError as error:
        say_failure(error)
    if as_json:
        _print_json(config.model, report)
    elif report is None:
        click.echo(_not_running(config.model), err=as_prometheus)
    elif as_prometheus:
        from engine.prometheus import prometheus_text

        click.echo(prometheus_text(report), nl=False)
    else:
        _show(config.model, report)
    sys.exit(0 if report is not None else NOT_RUNNING)


async def read_status(config: EngineConfig) -> StatusReport | None:
    """What the engine says of itself, None where none runs. Raises EngineError."""
    from lsp_server.engine_connection import EngineGone, connect

    try:
        connection = await connect(address_of(config), "lacuna-status")
        try:
            return await connection.status()
        finally:
            await connection.close()
    except EngineGone:
        return None


def _not_running(model: str) -> str:
    return f"No engine for {model} is running. It starts when an editor needs it, or by `lacuna engine start`."


def _print_json(model: str, report: StatusReport | None) -> None:
    state: dict[str, object] = {"running": report is not None, "model": model}
    if report is not None:
        state |= asdict(report)
    click.echo(json.dumps(state))


def _show(model: str, report: StatusReport) -> None:
    from rich.console import Console

    from engine.cli.status_view import status_view

    Console().print(status_view(model, report))


def _watch(config: EngineConfig, every: float) -> None:
    """Look again and again; an engine that has left, or is not there yet, is waited for."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from engine.cli.status_view import status_view

    with Live(Text("…"), auto_refresh=False, transient=False) as live:
        while True:
            report = asyncio.run(read_status(config))
            seen = Text(_not_running(config.model)) if report is None else status_view(config.model, report)
            live.update(Group(seen), refresh=True)
            time.sleep(every)
