"""A scripted `Engine`: answers what a test says, and remembers what it was asked and which work was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from engine.protocol.errors import EngineError
from engine.protocol.messages import (
    Done,
    Draft,
    Facts,
    Fill,
    Filled,
    Found,
    Loading,
    Rewrite,
    Stats,
    StatusReport,
    Stop,
)
from lsp_server.engine_client import EngineState

FACTS = Facts(
    model="scripted",
    family="fake",
    device="cpu",
    precision="none",
    adapter="",
    window_tokens=4096,
    threads=1,
    forward_ms=((1, 1.0),),
    engine_version="0",
    pid=0,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer; of `alternatives` as many are told as were asked for.

    `hold` waits for `FakeEngine.release`; `delay_s` lets real time pass before the answer. `found` is how many of the
    texts, the first included, are told as found before that. A draft is a text that is all settled, or a text and how
    much of it is; `draft_s` lets real time pass before each, `hold_drafts` waits for a `FakeEngine.step` before each
    and before the answer.

    `kind` (fill or rewrite), `about` (what must stand in the request's texts) and the `seed` of a rewrite keep a reply
    for such requests.
    """

    text: str = ""
    alternatives: tuple[str, ...] = ()
    stop: Stop = "end"
    drafts: tuple[str | tuple[str, int], ...] = ()
    hold: bool = False
    found: int = 0
    delay_s: float = 0.0
    draft_s: float = 0.0
    hold_drafts: bool = False
    error: EngineError | None = None
    kind: str = ""
    about: str = ""
    seed: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether it is for some requests only."""
        return bool(self.kind or self.about) or self.seed is not None

    def answers(self, request: Fill | Rewrite) -> bool:
        """Whether it is kept for requests like this one."""
        if self.kind not in ("", "fill" if isinstance(request, Fill) else "rewrite"):
            return False
        if self.seed is not None and (isinstance(request, Fill) or request.seed != self.seed):
            return False
        texts = (
            (request.prefix, request.draft, request.suffix)
            if isinstance(request, Fill)
            else (request.instruction, request.before, request.selection)
        )
        return any(self.about in text for text in texts)


@dataclass
class FakeEngine:
    """Replies are used in order, one for each hole; the last one stays. One that is kept for requests of a kind answers
    all of them, before those in order. `start` makes an engine that was off ready at once."""

    replies: Sequence[Reply] = (Reply(),)
    state: EngineState = "ready"
    facts: Facts | None = FACTS
    model: str = "scripted"
    failure: EngineError | None = None
    state_after_start: EngineState = "ready"
    requests: list[Fill | Rewrite] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    starts: int = 0
    closed: bool = False
    _callbacks: list[Callable[[EngineState, str], None]] = field(default_factory=list)
    _loading_callbacks: list[Callable[[Loading], None]] = field(default_factory=list)
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _steps: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _running: set[str] = field(default_factory=set)
    _taken: int = 0

    def start(self) -> None:
        self.starts += 1
        if self.state == "off":
            self.move(self.state_after_start, "")

    def move(self, state: EngineState, message: str, remedy: str = "") -> None:
        """Change state as a real engine would, and tell. `remedy`: of one that failed."""
        self.state = state
        self.failure = EngineError("internal", message, remedy) if state == "failed" and remedy else None
        self._moved.set()
        for callback in self._callbacks:
            callback(state, message)

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        self._callbacks.append(callback)

    def on_loading(self, callback: Callable[[Loading], None]) -> None:
        self._loading_callbacks.append(callback)

    def tell_loading(self, loading: Loading) -> None:
        """Tell how far the model is, as a real engine would."""
        for callback in self._loading_callbacks:
            callback(loading)

    def release(self) -> None:
        """Let every answer that is held go out, and later ones too."""
        self._released.set()

    def step(self, count: int = 1) -> None:
        """Let the next `count` drafts that are held go out, or an answer behind them."""
        for _ in range(count):
            self._steps.release()

    async def asked(self, count: int) -> None:
        """Wait until `count` requests have come in all."""
        while len(self.requests) < count:
            self._asked.clear()
            await self._asked.wait()

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        while wait and self.state in ("starting", "loading"):
            self._moved.clear()
            await self._moved.wait()
        reply = self._next_reply(request)
        further = [self._next_reply(request) for _ in request.further] if isinstance(request, Fill) else []
        self.requests.append(request)
        self._asked.set()
        self._running.add(request.id)
        try:
            if on_found is not None and reply.found:
                on_found(Found(request.id, reply.text, reply.alternatives[: reply.found - 1]))
            done = await self._run(request, reply, on_draft)
            others = [await self._run(request, each, on_draft, hole) for hole, each in enumerate(further, start=1)]
            return replace(done, further=tuple(Filled(each.text, each.stats.stop) for each in others))
        except asyncio.CancelledError:
            self.cancelled.append(request.id)
            raise
        finally:
            self._running.discard(request.id)

    def _next_reply(self, request: Fill | Rewrite) -> Reply:
        kept = next((reply for reply in self.replies if reply.is_kept and reply.answers(request)), None)
        if kept is not None:
            return kept
        self._taken += 1
        in_order = [reply for reply in self.replies if not reply.is_kept] or [Reply()]
        return in_order[min(self._taken, len(in_order)) - 1]

    async def _run(
        self, request: Fill | Rewrite, reply: Reply, on_draft: Callable[[Draft], None] | None, hole: int = 0
    ) -> Done:
        if request.wants_drafts and on_draft is not None:
            for step, draft in enumerate(reply.drafts, start=1):
                await self._turn(reply)
                text, settled = (draft, len(draft)) if isinstance(draft, str) else draft
                on_draft(Draft(request.id, text, settled, step, len(reply.drafts), hole))
            if reply.hold_drafts:
                await self._steps.acquire()
        if reply.hold:
            await self._released.wait()
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.error is not None:
            raise reply.error
        wanted = request.alternatives if isinstance(request, Fill) else 1
        return Done(request.id, reply.text, stats(reply.stop), reply.alternatives[: wanted - 1])

    async def _turn(self, reply: Reply) -> None:
        if reply.hold_drafts:
            await self._steps.acquire()
        if reply.draft_s:
            await asyncio.sleep(reply.draft_s)

    async def status(self) -> StatusReport:
        jobs = len(self.requests) - len(self._running) - len(self.cancelled)
        return StatusReport(
            "ready", self.facts, 1.0, 0.0, 1800.0, 1, len(self._running), jobs, len(self.cancelled), 0, 1.0
        )

    async def close(self) -> None:
        self.closed = True


def stats(stop: Stop = "end") -> Stats:
    """Stats of a scripted result."""
    return Stats("causal", "scripted", stop, 3, 7, 11, 5, 1.0, 2.0, 4.0, (("lookup", 4, 2),))
