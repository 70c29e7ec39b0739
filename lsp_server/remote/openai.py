"""Servers that speak OpenAI's API: vLLM, llama.cpp, Ollama and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.protocol.errors import EngineError
from lsp_server.remote.dialect import Talk
from lsp_server.remote.endpoint import Endpoint

if TYPE_CHECKING:
    import httpx


class OpenAI:
    """See `Dialect`."""

    async def greet(self, client: httpx.AsyncClient, endpoint: Endpoint) -> Talk:
        """See `Dialect.greet`."""
        await client.get(f"{endpoint.url}/models")
        raise EngineError("bad_reply", f"{endpoint.host} cannot be greeted yet", "leave `engine.url` empty")
