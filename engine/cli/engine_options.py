"""What the commands about an engine have in common: which is meant, how it is to be, how a failure is said."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from engine.config import DEFAULT_MODEL, EngineConfig, read_config
from engine.protocol.address import Address, engine_address
from engine.protocol.errors import EngineError

_Command = TypeVar("_Command", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A range of numbers: `nan` and infinity, which pass click's own, are wrong usage."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def options(*declared: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """One decorator of several options, in the order of the help."""

    def apply(command: _Command) -> _Command:
        for option in reversed(declared):
            command = option(command)
        return command

    return apply


def engine_options(command: _Command) -> _Command:
    """How an engine is to be."""
    return options(
        click.option("--family", help="Model family or layout (a2d-bd3lm, ...), where nothing else tells. [auto]"),
        click.option("--precision", help="int8, fp32 or bf16. [auto]"),
        click.option("--device", help="cpu, cuda or cuda:N. [auto]"),
        click.option("--threads", help="Threads for one step; 0 means one per core. [0]"),
        click.option("--window-tokens", help="Longest prompt and gap together; 0 means what the model is set for. [0]"),
        click.option("--cache-mib", help="Memory for prompts kept between requests, in MiB. [176]"),
        click.option(
            "--hole-order", help="least_doubt or top_down: which of several holes is filled first. [least_doubt]"
        ),
        click.option("--diffusion-share", help="Percentage of jobs that may take the diffusion route. [100]"),
        click.option("--step-limit-s", help="Seconds after which a step is taken to hang; 0: by what passes take. [0]"),
        click.option("--adapter/--no-adapter", default=None, help="Apply the model's patch for gaps. [on]"),
    )(command)


def own_options(command: _Command) -> _Command:
    """What a team's engine, which stays and whose numbers its gate tells, has no use for."""
    return options(
        click.option("--metrics-port", help="Port of 127.0.0.1 at which Prometheus may ask; 0 means none. [0]"),
        click.option("--idle-limit-s", help="Seconds without a job after which it leaves; 0 means never. [1800]"),
    )(command)


def address_options(command: _Command) -> _Command:
    """Which engine is meant."""
    says = f"Name of the model, as `lacuna models list` shows it, or a path. [{DEFAULT_MODEL}]"
    return options(
        click.option("--model", help=says),
        click.option("--transport", help="auto, unix or tcp: how clients reach it. [auto]"),
    )(command)


def read_options(given: dict[str, object]) -> EngineConfig:
    """The configuration the options of a command come to. Raises click.UsageError."""
    try:
        return read_config(given, os.environ)
    except EngineError as error:
        raise click.UsageError(f"{error.message}; {error.remedy}") from None


def address_of(config: EngineConfig) -> Address:
    """Where that engine lives. Raises EngineError(unsafe_address)."""
    return engine_address(config.model, os.environ, config.transport)


def require_known(config: EngineConfig) -> None:
    """Of an engine that does not run: raise EngineError(bad_request | ...) where its model could not be loaded by name.

    One whose files are not here is known: its engine is just not running.
    """
    from engine.protocol.model_name import is_path
    from engine.store import Store

    if not is_path(config.model):
        Store.of_user(os.environ).find(config.model)


def say_failure(error: EngineError) -> NoReturn:
    """Tell a failure on standard error, and end with exit status 1."""
    click.echo(f"Error: {error.message}\n  {error.remedy}", err=True)
    sys.exit(1)
