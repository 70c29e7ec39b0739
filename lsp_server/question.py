"""One question to the engine: asked as a job, bounded in time, its failures turned into `NoAnswer`.

Knows neither documents nor the wire.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Fill, Rewrite
from lsp_server.errors import NoAnswer, Notice, notice_for
from lsp_server.inflight import Job
from lsp_server.session import Session

# The engine keeps its own deadline and answers with its best draft; this much later it is taken for stuck.
GRACE_S = 0.5


async def ask(
    session: Session, job: Job, request: Fill | Rewrite, on_draft: Callable[[Draft], None] | None = None
) -> Done:
    """The engine's result, recorded. Raises NoAnswer, or Superseded when the job was overtaken.

    An engine that is not ready is not waited for. One that left for want of work is called back.
    """
    engine = session.engine
    if engine.state == "off":
        engine.start()
    if engine.state != "ready":
        raise NoAnswer(Notice("loading", f"Lacuna: the engine is {_waiting(engine.state)}.", prominent=False))
    timeout_s = request.deadline_ms / 1000 + GRACE_S if request.deadline_ms else None
    try:
        done = await job.run(engine.submit(request, on_draft), timeout_s)
    except TimeoutError:
        raise NoAnswer(Notice("late", "Lacuna: the engine did not answer in time.", prominent=False)) from None
    except EngineError as error:
        raise NoAnswer(notice_for(error)) from error
    session.record(job.kind, done.stats)
    return done


def _waiting(state: str) -> str:
    return "not available at present" if state == "failed" else "not ready yet; ask again in a moment"
