"""A loopback port at which Prometheus may ask how the engine is. There is none unless somebody wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client import start_http_server

from engine.prometheus import registry_of
from engine.protocol.errors import EngineError
from engine.protocol.messages import StatusReport

LOOPBACK = "127.0.0.1"
ANSWER_LIMIT_S = 5.0


class MetricsServer:
    """Answers HTTP on a loopback port, from threads of its own, until it is closed.

    report: called in `events` for every answer. Raises EngineError(bad_request) where the port cannot be had.
    """

    def __init__(self, port: int, report: Callable[[], StatusReport], events: asyncio.AbstractEventLoop) -> None:
        async def asked() -> StatusReport:
            return report()

        def ask() -> StatusReport:
            return asyncio.run_coroutine_threadsafe(asked(), events).result(ANSWER_LIMIT_S)

        try:
            self._server, self._thread = start_http_server(port, LOOPBACK, registry_of(ask))
        except OSError as fault:
            raise EngineError(
                "bad_request",
                f"the metrics port {port} of {LOOPBACK} cannot be had: {fault.strerror}",
                "choose another --metrics-port, or 0 for none",
            ) from None

    def close(self) -> None:
        """Stop answering, and wait until the port is free."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
