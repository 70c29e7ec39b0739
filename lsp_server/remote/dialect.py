"""The seam to a kind of server: how one is greeted, and what it can then be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Found, Rewrite, StatusReport
from lsp_server.remote.endpoint import Endpoint

if TYPE_CHECKING:
    import httpx

News = Draft | Found


class TryAgain(EngineError):  # noqa: N818 (what is to be done, as the other outcomes are named)
    """A failure of one attempt that says nothing about the next: the same request may be sent again after `after_s`.

    `after_s` is what the other side asked for, in seconds, None when it did not say.
    """

    def __init__(self, error: EngineError, after_s: float | None = None) -> None:
        super().__init__(error.kind, error.message, error.remedy)
        self.after_s = after_s


class Talk(Protocol):
    """A server that was greeted. Many requests may be under way at once."""

    @property
    def facts(self) -> Facts:
        """What the server is, as far as it says."""
        ...

    async def ask(self, request: Fill | Rewrite, on_news: Callable[[News], None]) -> Done:
        """One attempt at a request. `on_news` hears drafts if the request `wants_drafts`.

        Raises EngineError, TryAgain where another attempt may go better, or httpx.HTTPError. Cancelling the task that
        waits must close the stream, which is how the server learns that nobody wants the rest.
        """
        ...

    async def report(self) -> StatusReport | None:
        """The server's own report; None where it has none. Raises EngineError or httpx.HTTPError."""
        ...


class Dialect(Protocol):
    """One kind of server."""

    async def greet(self, client: httpx.AsyncClient, endpoint: Endpoint) -> Talk:
        """Reach the server and learn what it is. The client stays open for the talk, and has the token.

        Raises EngineError (bad_reply when it is another kind of server) or httpx.HTTPError.
        """
        ...
