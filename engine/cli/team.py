"""`lacuna engine serve|token`: an engine for a team, and who may use it.

Owns words, exit statuses and the foreground process; see `engine.team` for what it starts.
"""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.cli.engine_options import FiniteRange, engine_options
from engine.config import DEFAULT_MODEL, EngineConfig, read_config
from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    from engine.team.options import TeamOptions

_LOOK_S = 2.0


@click.command()
@click.option("--ray", "on_ray", is_flag=True, help="Serve with Ray Serve, which is what there is. Needs lacuna[team].")
@click.option("--model", "models", multiple=True, help=f"Model to serve; the first is the default. [{DEFAULT_MODEL}]")
@click.option("--tokens", type=click.Path(path_type=Path), required=True, help="File of who may use it.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; TLS beyond loopback.")
@click.option("--port", type=click.IntRange(1, 65535), default=9258, show_default=True)
@click.option("--tls-certificate", type=click.Path(path_type=Path), help="PEM file of the certificate, chain included.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="PEM file of its key.")
@click.option("--replicas", default="1", show_default=True, help="How many engines, or LEAST:MOST to follow the load.")
@click.option("--models-at-once", type=click.IntRange(1), default=1, show_default=True, help="Loaded in one replica.")
@click.option("--cpus", type=FiniteRange(0, 10_000), default=1.0, show_default=True, help="Cores of a replica.")
@click.option("--gpus", type=FiniteRange(0, 10_000), default=0.0, show_default=True, help="GPUs of a replica.")
@click.option("--cluster", default="", help="Address of a running Ray cluster, or auto. [one of our own]")
@click.option("--batch-canvases", type=click.IntRange(1, 1024), default=32, show_default=True, help="Most in one pass.")
@click.option("--batch-window-ms", type=click.IntRange(0, 10_000), default=50, show_default=True, help="Longest wait.")
@click.option("--jobs-at-once", type=click.IntRange(0), default=8, show_default=True, help="Of one user; 0: no limit.")
@click.option("--jobs-a-minute", type=click.IntRange(0), default=600, show_default=True, help="The same, of its rate.")
@engine_options
def serve(
    on_ray: bool,
    models: tuple[str, ...],
    tokens: Path,
    host: str,
    port: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    replicas: str,
    models_at_once: int,
    cpus: float,
    gpus: float,
    cluster: str,
    batch_canvases: int,
    batch_window_ms: int,
    jobs_at_once: int,
    jobs_a_minute: int,
    **engine: object,
) -> None:
    """Serve a team over HTTP until stopped."""
    from engine.team.batch_limits import BatchLimits
    from engine.team.options import TeamOptions
    from engine.team.quotas import Quota

    if not on_ray:
        raise click.UsageError("say --ray: Ray Serve is what a team's engine runs on")
    team = TeamOptions(
        engines=tuple(_engine_config(model, engine, cpus) for model in models or (DEFAULT_MODEL,)),
        entries=read_tokens(tokens),
        host=host,
        port=port,
        certificate=tls_certificate,
        key=tls_key,
        replicas=least_and_most(replicas),
        models_at_once=models_at_once,
        cpus=cpus,
        gpus=gpus,
        cluster=cluster,
        limits=BatchLimits(batch_canvases, batch_window_ms / 1000),
        quota=Quota(jobs_at_once, jobs_a_minute),
    )
    _require_models(team.engines)
    _serve(team, tokens)


@click.command()
@click.argument("user")
@click.option("--tokens", type=click.Path(path_type=Path), required=True, help="File to add the entry to.")
def token(user: str, tokens: Path) -> None:
    """Let USER in: adds an entry to the file, and prints the token, which is kept nowhere.

    A user who has tokens already keeps them: all of them are valid until their lines are removed from the file.
    """
    from engine.team.access import entries_of, new_entry

    made, entry = new_entry(user)
    with os.fdopen(os.open(tokens, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+", encoding="utf-8") as file:
        file.seek(0)
        held = file.read()
        # An editor may have left the last line without an end.
        file.write(f"{entry}\n" if not held or held.endswith("\n") else f"\n{entry}\n")
    click.echo(made)
    if had := entries_of(user, held):
        others = "a token" if had == 1 else f"{had} tokens"
        valid = "both are" if had == 1 else "all of them are"
        remove = "its line" if had == 1 else "their lines"
        click.echo(f"{user} had {others} already: {valid} valid. Remove {remove} from {tokens} to end that.", err=True)


def least_and_most(replicas: str) -> tuple[int, int]:
    """ "2" or "1:4" as two numbers. Raises EngineError(bad_request)."""
    least, _, most = replicas.partition(":")
    if not least.isdigit() or not (most or least).isdigit():
        raise EngineError("bad_request", f"--replicas is {replicas[:40]!r}", "give a number, or two as in 1:4")
    return int(least), int(most or least)


def read_tokens(path: Path) -> tuple[tuple[str, str], ...]:
    """The entries of a tokens file. Raises EngineError(bad_request)."""
    from engine.team.access import TokenBook

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = getattr(fault, "strerror", None) or "it is not text"
        raise EngineError(
            "bad_request",
            f"the tokens file {path} cannot be read: {reason}",
            f"make it with `lacuna engine token USER --tokens {shlex.quote(str(path))}`",
        ) from None
    return TokenBook.parse(text).entries


def _engine_config(model: str, given: Mapping[str, object], cpus: float) -> EngineConfig:
    config = read_config({**given, "model": model}, os.environ)
    # Replicas share a machine: each takes its own cores, not all of them. An engine of a team does not leave.
    threads = config.threads or max(1, round(cpus))
    return replace(config, threads=threads, idle_limit_s=0.0)


def _require_models(configs: Sequence[EngineConfig]) -> None:
    """Raise EngineError(model_missing) here, where somebody reads it, and not in a replica."""
    from engine.store import Store

    for config in configs:
        Store.of_user(os.environ).locate(config.model)


def _serve(options: TeamOptions, tokens: Path) -> None:
    try:
        from engine.team import ray_app
    except ImportError as fault:
        raise EngineError(
            "internal", f"Ray Serve is not installed ({fault.name})", "run `pip install 'lacuna[team]'`"
        ) from None
    leave = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: leave.set())
    try:
        application = ray_app.start(options, os.environ)
        models = ", ".join(config.model for config in options.engines)
        click.echo(f"Serving {models} at {options.url}. Ctrl-C ends it.")
        entries, seen = options.entries, _stamp(tokens)
        while not leave.wait(_LOOK_S):
            if _stamp(tokens) != seen:
                seen = _stamp(tokens)
                entries = _read_anew(tokens, entries)
            application.admit(entries)
    finally:
        ray_app.stop(options)


def _read_anew(tokens: Path, entries: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """What the tokens file holds by now; what it held, and a word about it, where it is damaged."""
    try:
        entries = read_tokens(tokens)
    except EngineError as error:
        click.echo(f"The tokens stay as they were: {error.message}.", err=True)
        return entries
    click.echo(f"Tokens read anew: {len(entries)} entries.")
    return entries


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
