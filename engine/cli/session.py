"""A connection to the resident engine for one command, with the model's loading shown on a terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from lsp_server.engine_client import EngineProcess


@asynccontextmanager
async def connected_engine(model: str) -> AsyncIterator[EngineProcess]:
    """The engine of `model`, ready; started when it is not running and left running afterwards. Raises EngineError."""
    from lsp_server.engine_client import EngineProcess

    engine = EngineProcess(model, client="lacuna-cli")
    console = Console(stderr=True)
    try:
        with console.status("starting the engine") as shown:
            engine.on_loading(
                lambda loading: shown.update(f"loading the model: {loading.stage} {loading.fraction:.0%}")
            )
            await engine.ready()
        yield engine
    finally:
        await engine.close()
