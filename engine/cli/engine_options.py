"""What the commands about the resident engine have in common: which engine is meant, and how a failure is said."""

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
