"""Which implementation of `Engine` serves a choice. What a remote one needs is imported when it is chosen."""

from __future__ import annotations

from lsp_server.engine_client import Engine, EngineProcess
from lsp_server.remote.choice import EngineChoice, choice_of
from lsp_server.remote.dialect import Dialect
from lsp_server.settings import Settings


def engine_for(settings: Settings, model: str) -> Engine:
    """The engine that `settings` ask for; `model` is that of the local one."""
    return engine_of(choice_of(settings), model)


def engine_of(choice: EngineChoice, model: str) -> Engine:
    """The engine of a choice, not yet started."""
    if choice.is_local:
        return EngineProcess(model)
    from lsp_server.remote.remote_engine import RemoteEngine

    return RemoteEngine(choice, dialect_of(choice.api))


def dialect_of(api: str) -> Dialect:
    """How a server with this `engine.api` is spoken to."""
    from lsp_server.remote.either import Either
    from lsp_server.remote.lacuna_http import LacunaHttp
    from lsp_server.remote.openai import OpenAI

    by_api: dict[str, tuple[Dialect, ...]] = {"lacuna": (LacunaHttp(),), "openai": (OpenAI(),)}
    return Either(by_api.get(api) or tuple(dialect for dialects in by_api.values() for dialect in dialects))
