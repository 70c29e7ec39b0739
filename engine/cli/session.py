"""A connection to the resident engine for one command, with the model's loading shown on a terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from lsp_server.engine_client import EngineProcess
    from lsp_server.remote.remote_engine import RemoteEngine


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Which engine a command asks: that of `model` on this machine, or with a `url` one elsewhere.

    `named_model` is the model a person named for it; empty takes the first that is served there.
    """

    model: str
    url: str = ""
    token_file: str = ""
    named_model: str = ""


@asynccontextmanager
async def connected_engine(address: EngineAddress) -> AsyncIterator[EngineProcess | RemoteEngine]:
    """The engine, ready; one of this machine is started when it is not running and left running afterwards.

    Raises EngineError. That a text leaves this machine is said.
    """
    console = Console(stderr=True)
    engine = _engine(address, console)
    try:
        with console.status("starting the engine") as shown:
            engine.on_loading(
                lambda loading: shown.update(f"loading the model: {loading.stage} {loading.fraction:.0%}")
            )
            await engine.ready()
        yield engine
    finally:
        await engine.close()


def _engine(address: EngineAddress, console: Console) -> EngineProcess | RemoteEngine:
    from lsp_server.engine_client import EngineProcess

    if not address.url:
        return EngineProcess(address.model, client="lacuna-cli")
    from lsp_server.remote.choice import EngineChoice
    from lsp_server.remote.endpoint import leaves_for
    from lsp_server.remote.factory import dialect_of
    from lsp_server.remote.remote_engine import RemoteEngine

    choice = EngineChoice(address.url, model=address.named_model, token_file=address.token_file)
    if host := leaves_for(choice):
        console.print(f"the text around what is asked for is sent to {host}", markup=False)
    return RemoteEngine(choice, dialect_of(choice.api))
