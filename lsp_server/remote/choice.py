"""Which engine the settings ask for. Pure: nothing is looked up, nothing is reached."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.settings import Settings


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What the settings say of the engine. An empty `url` is the engine on this machine's socket.

    `api` is auto, lacuna or openai; `model` may be empty; `token_file` is a path or empty; `timeout_s` in seconds.
    """

    url: str = ""
    api: str = "auto"
    model: str = ""
    token_file: str = ""
    timeout_s: float = 30.0

    @property
    def is_local(self) -> bool:
        """Whether it is the engine on this machine's socket."""
        return not self.url


def choice_of(settings: Settings) -> EngineChoice:
    """The engine that `settings` ask for; those without a URL ask for the local one, whatever else they say."""
    if not settings.engine_url:
        return EngineChoice()
    return EngineChoice(
        settings.engine_url,
        settings.engine_api,
        settings.engine_model,
        settings.engine_token_file,
        settings.engine_timeout_ms / 1000,
    )
