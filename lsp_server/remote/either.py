"""Whichever dialect the server answers to: the first of several that it understands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.protocol.errors import EngineError
from lsp_server.remote.dialect import Dialect, Talk
from lsp_server.remote.endpoint import Endpoint

if TYPE_CHECKING:
    import httpx

# What a server says that does not know the path it was asked at, or answers there in words of its own.
_ANOTHER_KIND = frozenset({"bad_reply", "model_missing", "bad_request"})


@dataclass(frozen=True, slots=True)
class Either:
    """Dialects in the order in which they are tried."""

    dialects: Sequence[Dialect]

    async def greet(self, client: httpx.AsyncClient, endpoint: Endpoint) -> Talk:
        """See `Dialect.greet`. When nobody is understood, the last dialect says why."""
        *others, last = self.dialects
        for dialect in others:
            try:
                return await dialect.greet(client, endpoint)
            except EngineError as fault:
                if fault.kind not in _ANOTHER_KIND:
                    raise
        return await last.greet(client, endpoint)
