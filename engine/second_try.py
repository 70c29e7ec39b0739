"""A text that does not pass its gates is made again by the other route, once: `with_second_try`.

Only the diffusion route has another one, the causal. It was the route that failed where the causal text passes, or
where it broke down; where gates refuse both texts it is the model that knows no better. Owns no model.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from engine.diffusion.denoise import Denoised, draft_counts
from engine.loop import log_fault
from engine.monitor import Course
from engine.protocol.errors import EngineError
from engine.protocol.messages import Draft, Gate
from engine.quality import Fault, Verdict
from engine.router import Decision, causal_again

Judging = Generator[Draft | None, None, tuple[Denoised, Verdict]]

_BROKE_DOWN = Verdict(faults=(Fault("fault", "the diffusion route broke down"),))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A text, the route it came by, how sure it is, and the gates that spoke against it or one it stands for."""

    result: Denoised
    decision: Decision
    confidence: float | None = None
    gates: tuple[Gate, ...] = ()
    is_second: bool = False


def with_second_try(
    first: Callable[[], Judging],
    again: Callable[[Denoised | None, Decision], Judging],
    decision: Decision,
    course: Course,
    *,
    may_repeat: bool = True,
    is_drawn: bool = False,
) -> Generator[Draft | None, None, Attempt]:
    """Take the steps of `first`, which goes the way of `decision`, and if need be those of `again`, untold.

    again: is handed the refused text, None where the route broke down. may_repeat: False to only tell of gates.
    is_drawn: chance had a hand in the first text, so that its gates tell nothing of the route. course: is told what
    spoke against which route. Raises what the causal route raises, and of the diffusion route EngineError, which is
    about the request.
    """
    text: Denoised | None = None
    try:
        text, verdict = yield from first()
    except EngineError:
        raise
    except Exception as fault:
        if decision.route == "causal":
            raise
        if not may_repeat:
            course.judge(went_well=False)
            raise
        log_fault("the diffusion route broke down", fault)
        verdict = _BROKE_DOWN
    course.refuse(decision.route, verdict.gates)
    if text is not None and (decision.route == "causal" or not verdict.faults or not may_repeat):
        if decision.route == "diffusion":
            course.judge(went_well=True)
        return Attempt(text, decision, verdict.confidence, verdict.gates)
    causal = causal_again(decision, verdict.words)
    second, second_verdict = yield from _untold(again(text, causal))
    if text is not None and second.stop == "deadline":
        # A whole text that is doubtful is more than a part of one that may be no better.
        return Attempt(_with_work_of(text, second), decision, verdict.confidence, verdict.gates)
    course.fallbacks += 1
    course.route = "causal"
    course.refuse("causal", second_verdict.gates)
    course.judge(went_well=text is not None and (is_drawn or bool(second_verdict.faults)))
    gates = tuple(dict.fromkeys((*verdict.gates, *second_verdict.gates)))
    return Attempt(_with_work_of(second, text), causal, second_verdict.confidence, gates, is_second=True)


def _untold(steps: Judging) -> Generator[None, None, tuple[Denoised, Verdict]]:
    """The steps without their drafts: those of the first text were told, and what was told as settled stays."""
    try:
        while True:
            next(steps)
            yield None
    except StopIteration as end:
        judged: tuple[Denoised, Verdict] = end.value
        return judged
    finally:
        steps.close()


def _with_work_of(kept: Denoised, other: Denoised | None) -> Denoised:
    """`kept` with what the other text cost."""
    if other is None:
        return kept
    return replace(kept, passes=kept.passes + other.passes, drafts=draft_counts([kept.drafts, other.drafts]))
