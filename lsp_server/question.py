"""One question to the engine: asked as a job, bounded in time, its failures turned into `NoAnswer`.

Knows neither documents nor the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Fill, Found, Rewrite
from lsp_server.errors import NoAnswer, Notice, notice_for, notice_while_failed
from lsp_server.inflight import Job
from lsp_server.session import Session

# The engine keeps its own deadline and answers with its best draft, but looks at the clock only between steps,
# which on a busy machine take a second. Later than this it is taken for stuck.
LONGEST_GRACE_S = 2.0
SHORTEST_GRACE_S = 0.25

# How long an engine that did not answer in time is asked why.
REPORT_S = 1.0

LATE = Notice("late", "Lacuna: the engine did not answer in time: it is busy, or this machine is.", prominent=False)


async def ask(
    session: Session,
    job: Job,
    request: Fill | Rewrite,
    on_draft: Callable[[Draft], None] | None = None,
    patience_s: float | None = None,
    on_found: Callable[[Found], None] | None = None,
) -> Done:
    """The engine's result, recorded. Raises NoAnswer, or Superseded when the job was overtaken.

    An engine that is on its way is waited for by who picked a rewrite, and not by who types. One that left for want of
    work is called back. Without `patience_s` the request's own deadline and some grace are waited for, the engine's
    start included. Work that nobody waits for any more makes room.
    """
    engine = session.engine
    session.wake_engine()
    session.inflight.make_room()
    is_act = job.kind == "rewrite"
    if engine.state != "ready" and not (is_act and engine.state in ("starting", "loading")):
        raise NoAnswer(_not_ready(session, job))
    try:
        work = engine.submit(request, on_draft, on_found=on_found, wait=is_act)
        with session.status.work(), session.waiting_act() if is_act else nullcontext():
            done = await job.run(work, patience_s or _patience_s(request.deadline_ms))
    except TimeoutError:
        if engine.state != "ready":
            raise NoAnswer(_not_ready(session, job)) from None
        raise NoAnswer(await _late(session) if is_act else LATE) from None
    except EngineError as error:
        raise NoAnswer(notice_for(error)) from error
    session.record(job.kind, done.stats)
    return done


def _patience_s(deadline_ms: int) -> float | None:
    """How long to wait for an answer with this deadline; None for as long as it takes."""
    if not deadline_ms:
        return None
    deadline_s = deadline_ms / 1000
    return deadline_s + min(LONGEST_GRACE_S, SHORTEST_GRACE_S + deadline_s / 2)


async def _late(session: Session) -> Notice:
    """Why a rewrite did not come in time: it serves all editors, and is stuck only if it says nothing at all."""
    try:
        async with asyncio.timeout(REPORT_S):
            report = await session.engine.status()
    except (EngineError, TimeoutError):
        text = "the engine does not answer. Ask again; if that does not help, run `lacuna engine stop`."
        return Notice("late", f"Lacuna: {text}", prominent=False, is_fault=True)
    # What was given up a moment ago may still be counted.
    others = "with other work, perhaps another editor's, " if report.jobs_running > 1 else ""
    text = f"the engine is busy {others}and could not finish this in time. Nothing was changed; ask again later."
    return Notice("late", f"Lacuna: {text}", prominent=False)


def _not_ready(session: Session, job: Job) -> Notice:
    """Who types has been told by the engine's change of state; who picked a rewrite is told why nothing comes."""
    if session.engine.state == "failed":
        why = session.engine_message
        is_retried = job.kind == "rewrite" and session.retry_engine()
        return notice_while_failed(why, is_retried=is_retried)
    text = "Lacuna: the engine is not ready yet. Nothing was changed; ask again in a moment."
    return Notice("not ready", text, prominent=False, is_known=True)
