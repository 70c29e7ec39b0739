"""An engine over HTTP as the rest of the server sees it, whatever dialect it speaks.

Its life: off → starting → loading → ready or failed; a failed one is tried again with growing pauses, one that loads
its model is asked again and again, and waited for. It is not watched while it
is ready: a request that cannot reach it says so. One that has answered before is then greeted again at once. One that
greets and yet fails every request has failed, so that a person is told once and not with every key.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Found, Loading, Rewrite, StatusReport
from lsp_server.engine_client import Patience
from lsp_server.engine_condition import EngineCondition, EngineState
from lsp_server.engine_connection import EngineGone
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.dialect import Dialect, News, Talk, TryAgain
from lsp_server.remote.endpoint import Endpoint, endpoint_of, host_of
from lsp_server.remote.http_errors import lost_connection
from lsp_server.sentences import sentences

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

# How long an unused connection is kept: a new one costs who types several round trips.
KEEP_ALIVE_S = 120.0
CONNECT_S = 10.0

# After these a request's server is greeted anew, which reads the token again and tells the person what is wrong.
_ESTRANGED = frozenset({"unreachable", "bad_token", "unsafe_address", "model_missing", "draining", "gone", "loading"})


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request that somebody waits for is sent, and after which pauses. Who types is never kept waiting."""

    most: int = 3
    first_s: float = 0.25
    longest_s: float = 4.0

    def pause_s(self, attempt: int, asked_s: float | None) -> float:
        """The pause behind attempt number `attempt`, from 1; `asked_s` is what the other side asked for."""
        wanted = self.first_s * 2.0 ** (attempt - 1) if asked_s is None else asked_s
        return min(self.longest_s, max(wanted, 0.0))


class RemoteEngine:
    """See the module. Belongs to one event loop."""

    def __init__(
        self,
        choice: EngineChoice,
        dialect: Dialect,
        *,
        patience: Patience | None = None,
        retries: Retries | None = None,
    ) -> None:
        self._choice = choice
        self._dialect = dialect
        self._patience = patience or Patience()
        self._retries = retries or Retries()
        self._host = host_of(choice)
        self._condition = EngineCondition()
        self._client: httpx.AsyncClient | None = None
        self._talk: Talk | None = None
        self._failure: EngineError | None = None
        self._task: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._estranged = asyncio.Event()
        # Since it was greeted last.
        self._has_answered = False
        # When it was first found loading, on the clock of the event loop.
        self._loading_since: float | None = None
        self._attempts: set[asyncio.Task[Done]] = set()
        self._counts = _Counts()

    @property
    def state(self) -> EngineState:
        return self._condition.state

    @property
    def model(self) -> str:
        return self._choice.model

    @property
    def facts(self) -> Facts | None:
        return self._talk.facts if self._talk is not None and self.state == "ready" else None

    @property
    def failure(self) -> EngineError | None:
        return self._failure if self.state == "failed" else None

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        self._condition.on_change(callback)

    def on_loading(self, callback: Callable[[Loading], None]) -> None:
        """Nobody tells how far another machine's model is."""

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._look()
            self._task = asyncio.create_task(self._keep_connected())
        elif self.state == "failed":
            self._look()
            self._asked.set()

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        if self.state == "off":
            self.start()
        if wait:
            await self.ready()
        if self.state == "failed" and self._failure is not None:
            raise self._failure
        if self.state != "ready" or self._talk is None:
            raise EngineError("loading", self._condition.message, "ask again in a moment")

        def on_news(news: News) -> None:
            if isinstance(news, Draft) and on_draft is not None:
                on_draft(news)
            elif isinstance(news, Found) and on_found is not None:
                on_found(news)

        with self._counts.job():
            return await self._with_retries(request, on_news, self._retries.most if wait else 1)

    async def ready(self) -> Facts:
        """Wait until the server was greeted, beginning to if nobody has. Raises the EngineError that failed with."""
        if self.state == "off":
            self.start()
        while self.state in ("starting", "loading"):
            await self._condition.changed()
        if (facts := self.facts) is not None:
            return facts
        raise self._failure or EngineGone()

    async def status(self) -> StatusReport:
        """The server's own report, or what is known here, where the jobs are this client's."""
        import httpx

        if self._talk is None or self.state != "ready":
            raise EngineGone(f"{self._host} is not connected")
        try:
            return await self._talk.report() or self._counts.report(self._talk.facts)
        except httpx.HTTPError as fault:
            raise lost_connection(fault, self._host) from None

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        client, self._client, self._talk = self._client, None, None
        for attempt in self._attempts:
            attempt.cancel()
        if client is not None:
            await client.aclose()
        self._condition.move("off", "closed")

    # Asking

    async def _with_retries(self, request: Fill | Rewrite, on_news: Callable[[News], None], attempts: int) -> Done:
        """Jobs are functions of their request alone, so one that was lost on the way may simply be asked again."""
        attempt = 1
        while True:
            try:
                done = await self._once(request, on_news)
            except EngineError as fault:
                is_last = attempt >= attempts or not (isinstance(fault, TryAgain) or fault.kind == "loading")
                if fault.kind in _ESTRANGED and (is_last or fault.kind == "loading"):
                    self._estrange(fault)
                if is_last:
                    raise
                if fault.kind == "loading":
                    await self.ready()
                asked_s = fault.after_s if isinstance(fault, TryAgain) else None
                await asyncio.sleep(self._retries.pause_s(attempt, asked_s))
            else:
                self._has_answered = True
                return done
            attempt += 1

    async def _once(self, request: Fill | Rewrite, on_news: Callable[[News], None]) -> Done:
        """One attempt. A connection that broke is replaced at once and for everybody: often it was only an old one."""
        import httpx

        try:
            try:
                return await self._attempt(request, on_news)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                return await self._attempt(request, on_news)
        except httpx.HTTPError as fault:
            lost = lost_connection(fault, self._host)
            raise (lost if lost.kind == "timed_out" else TryAgain(lost)) from None

    async def _attempt(self, request: Fill | Rewrite, on_news: Callable[[News], None]) -> Done:
        if self._talk is None:
            raise EngineGone
        attempt = asyncio.ensure_future(self._talk.ask(request, on_news))
        self._attempts.add(attempt)
        try:
            return await attempt
        except asyncio.CancelledError:
            # Cancelled by `close`, and not by who waits.
            task = asyncio.current_task()
            if self._client is None and task is not None and not task.cancelling():
                raise EngineGone from None
            raise
        finally:
            self._attempts.discard(attempt)

    # Staying connected

    def _estrange(self, fault: EngineError) -> None:
        """The server is not what it was. Said at once, so that who asks next waits until it is greeted again."""
        if self.state != "ready":
            return
        self._estranged.set()
        if fault.kind == "loading":
            self._load(fault)
        elif self._has_answered:
            self._condition.move("starting", f"{self._host} could not be asked; it is looked for again")
        else:
            self._fail(fault)

    def _load(self, fault: EngineError) -> None:
        """The server reads its model: it will come, unless that takes longer than any model does."""
        now = asyncio.get_running_loop().time()
        self._loading_since = now if self._loading_since is None else self._loading_since
        if now - self._loading_since < self._patience.load_s:
            self._condition.move("loading", fault.message)
        else:
            remedy = "look at that server's log"
            self._fail(EngineError("timed_out", f"{self._host} does not finish loading its model", remedy))

    def _fail(self, fault: EngineError) -> None:
        self._failure = fault
        self._condition.move("failed", sentences(fault.message, fault.remedy))

    async def _keep_connected(self) -> None:
        failures = 0
        while True:
            self._asked.clear()
            self._estranged.clear()
            fault = await self._greet()
            if fault is not None and fault.kind == "loading":
                self._load(fault)
            else:
                self._loading_since = None
                if fault is not None:
                    self._fail(fault)
                else:
                    self._has_answered = False
                    self._condition.move("ready", "ready")
                    await self._estranged.wait()
            # One that loads is on its way, which is no failure.
            failures = 1 if self._has_answered else failures + (self.state != "loading")
            self._has_answered = False
            await self._pause(self._pause_s(failures))

    def _pause_s(self, failures: int) -> float:
        if self.state == "loading":
            return self._patience.loading_retry_s
        kind = self._failure.kind if self.state == "failed" and self._failure is not None else "gone"
        return self._patience.pause(failures, kind)

    async def _greet(self) -> EngineError | None:
        """Greet the server; None when it answered. The token is read each time, so that a new one is used."""
        import httpx

        try:
            endpoint = await asyncio.to_thread(endpoint_of, self._choice)
            if self._client is None:
                self._client = http_client(endpoint, await asyncio.to_thread(trusted_authorities))
            self._client.headers.update(_authorization(endpoint))
            async with asyncio.timeout(self._patience.connect_s):
                self._talk = await self._dialect.greet(self._client, endpoint)
        except EngineError as fault:
            return fault
        except (httpx.HTTPError, TimeoutError) as fault:
            return lost_connection(fault, self._host)
        except Exception as fault:  # noqa: BLE001  Whatever it is, the editor goes on and a later try may work.
            log.error("greeting %s failed: %s", self._host, type(fault).__name__)
            return EngineError("internal", f"greeting {self._host} failed ({type(fault).__name__})", "report this")
        return None

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()

    def _look(self) -> None:
        self._condition.enter("starting", f"{self._host} is being asked")


class _Counts:
    """This client's jobs, for a report where the server has none."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._running = self._done = self._cancelled = self._failed = 0

    @contextmanager
    def job(self) -> Iterator[None]:
        """Around one job."""
        self._running += 1
        try:
            yield
        except asyncio.CancelledError:
            self._cancelled += 1
            raise
        except EngineError:
            self._failed += 1
            raise
        finally:
            self._running -= 1
        self._done += 1

    def report(self, facts: Facts) -> StatusReport:
        """Memory and idle time are another machine's affair: 0."""
        up_s = time.monotonic() - self._began
        counts = (self._running, self._done, self._cancelled, self._failed)
        return StatusReport("ready", facts, up_s, 0.0, 0.0, 1, *counts, 0.0)


def http_client(endpoint: Endpoint, authorities: ssl.SSLContext) -> httpx.AsyncClient:
    """A client for `endpoint`. It follows no redirect, which could lead documents and token to another host.

    On this machine no proxy is asked, whatever the environment says.
    """
    import httpx

    return httpx.AsyncClient(
        headers=_authorization(endpoint),
        timeout=httpx.Timeout(endpoint.timeout_s, connect=min(CONNECT_S, endpoint.timeout_s)),
        limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_S),
        verify=authorities,
        trust_env=not endpoint.is_loopback,
        follow_redirects=False,
    )


def trusted_authorities() -> ssl.SSLContext:
    """Whose certificates are believed: whom the system trusts (or SSL_CERT_FILE names), where it trusts nobody the
    authorities that come with httpx. Reads files."""
    import httpx

    context = ssl.create_default_context()
    return context if context.get_ca_certs() or "SSL_CERT_FILE" in os.environ else httpx.create_ssl_context()


def _authorization(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
