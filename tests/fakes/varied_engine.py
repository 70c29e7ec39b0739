"""An `Engine` that answers anything with anything: good texts, useless ones, failures, late ones, none at all.

What it says to a request follows from a seed and the request's own text. It keeps nothing of what it was asked, so
that a process with it in it grows only where the server keeps something.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Callable

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Fill, Filled, Found, Rewrite, StatusReport, Stop
from tests.fakes.fake_engine import FACTS, FakeEngine, stats

GAP_TEXTS = (
    "",
    " ",
    "\n\n\n",
    "value",
    "value)",
    "a + b",
    "a + b\n",
    "x = compute(1)\n    y = x + 2\n    return y\n",
    "🙂 = '漢字'",
    "}}}",
    "def later(x):\n    return x\n\n\ndef last():\n    pass\n",
    "one\r\ntwo\rthree\u2028four",
    "<fill>",
    "word " * 60,
    "abc " * 3 + "\n" + "abc " * 3,
)
FAILURES = ("loading", "draining", "bad_request", "window_exceeded", "round_trip", "gone", "internal")
STOPS: tuple[Stop, ...] = ("end", "end", "end", "end", "lines", "budget", "deadline")
# A request with a deadline as short as this may be left without an answer.
SHORT_MS = 300


class VariedEngine(FakeEngine):
    """Ready at once; `seed` chooses what it says."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._jobs = 0

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        self._jobs += 1
        chance = random.Random(self._seed ^ zlib.crc32(shown(request).encode("utf-8", "surrogatepass")))
        if on_draft is not None and request.wants_drafts:
            for step in (1, 2):
                on_draft(Draft(request.id, "draft"[:step], step, step, 2))
        await self._pass_time(chance, request.deadline_ms)
        if chance.random() < 0.05:
            raise EngineError(chance.choice(FAILURES), "scripted failure", "nothing to do")
        done = done_for(chance, request)
        if on_found is not None:
            await self._tell(chance, done, on_found)
        return done

    @staticmethod
    async def _tell(chance: random.Random, done: Done, on_found: Callable[[Found], None]) -> None:
        """Texts one after another; now and then the rest comes behind the server's answer."""
        for found in range(len(done.alternatives)):
            on_found(Found(done.id, done.text, done.alternatives[:found]))
            await asyncio.sleep(chance.choice((0.0, 0.005, 0.5)))

    @staticmethod
    async def _pass_time(chance: random.Random, deadline_ms: int) -> None:
        if deadline_ms and deadline_ms <= SHORT_MS and chance.random() < 0.1:
            await asyncio.Event().wait()
        await asyncio.sleep(chance.choice((0.0, 0.0, 0.002, 0.01, 0.03)))

    async def status(self) -> StatusReport:
        return StatusReport("ready", FACTS, 1.0, 0.0, 1800.0, 1, 0, self._jobs, 0, 0, 1.0)


def shown(request: Fill | Rewrite) -> str:
    """The text a request is told apart by."""
    if isinstance(request, Fill):
        return request.prefix + request.suffix
    return request.instruction + request.selection


def done_for(chance: random.Random, request: Fill | Rewrite) -> Done:
    """Any answer that fits the shape of the request."""
    if isinstance(request, Rewrite):
        return Done(request.id, _rewritten(chance, request.selection), stats(chance.choice(STOPS)))
    texts = [_gap_text(chance, request) for _ in range(request.alternatives)]
    further = tuple(Filled(_gap_text(chance, request), chance.choice(STOPS)) for _ in request.further)
    return Done(request.id, texts[0], stats(chance.choice(STOPS)), tuple(texts[1:]), further)


def _gap_text(chance: random.Random, request: Fill) -> str:
    """One of the texts, or a piece of what stands around the gap, as a model that repeats itself gives it."""
    around = (request.suffix[:40], request.prefix[-40:], request.suffix.partition("\n")[0])
    return chance.choice((*GAP_TEXTS, *around))


def _rewritten(chance: random.Random, text: str) -> str:
    lines = text.split("\n")
    place = chance.randrange(len(lines))
    return chance.choice(
        (
            text,
            "",
            text.upper(),
            text.replace("a", "alpha"),
            f"```python\n{text}\n```",
            text[: len(text) // 2],
            text + "\n",
            "\n".join([*lines[:place], "# one more line", *lines[place:]]),
            "\n".join([*lines[:place], *lines[place + 1 :]]),
            "\n".join(f"    {line}" for line in lines),
        )
    )
