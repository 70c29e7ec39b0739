"""What a fill asks for beside the likeliest text: the best of several, or others to choose from."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from engine.alternatives import alternatives
from engine.best_of import Around, best_of
from engine.diffusion.denoise import Denoised
from engine.models.base import Context, Denoiser
from engine.prompts import Prompt, lead_border
from engine.protocol.messages import Fill, Found
from engine.quality import Verdict
from engine.second_try import Attempt


@dataclass(frozen=True, slots=True)
class Choosing:
    """One gap with its likeliest text made. `context` holds the prompt; `expired` tells whether the time is up."""

    model: Denoiser
    context: Context
    prompt: Prompt
    request: Fill
    expired: Callable[[], bool]

    def best(self, made: Attempt, judge: Callable[[Denoised], Verdict]) -> Generator[None, None, Attempt]:
        """`made`, or a text that what follows goes on from better, where the request wants one chosen.

        judge: says what speaks against another text; one that gates refuse does not take the place of one they let be.
        """
        request, first = self.request, made.result
        if not chooses(request):
            return made
        around = Around(request.prefix[lead_border(request.prefix) :], request.suffix)
        config, count = made.decision.config, request.best_of
        best = yield from best_of(self.model, self.context, self.prompt, around, first, count, config, self.expired)
        if best.text == first.text:
            return replace(made, result=best)
        verdict = judge(best)
        if verdict.faults and not made.gates:
            return replace(made, result=replace(first, passes=best.passes, drafts=best.drafts))
        return replace(made, result=best, confidence=verdict.confidence, gates=verdict.gates)

    def alternatives(self, made: Attempt) -> Generator[Found | None, None, tuple[str, ...]]:
        """The other texts a fill asked for, as many as the deadline lets. All texts are told as they are found."""
        request, prompt, first = self.request, self.prompt, made.result
        wanted = request.alternatives - 1 if request.constraints is None else 0
        if wanted < 1 or self.expired():
            return ()
        text = prompt.whole(first.text)
        yield Found(request.id, text)
        others = alternatives(self.model, self.context, prompt, first, wanted, made.decision.config, self.expired)
        told: tuple[str, ...] = ()
        while True:
            try:
                found = next(others)
            except StopIteration as finished:
                every: tuple[str, ...] = finished.value
                return tuple(prompt.whole(other) for other in every)
            shown = tuple(prompt.whole(other) for other in found)
            yield Found(request.id, text, shown) if found != told else None
            told = found


def chooses(request: Fill) -> bool:
    """Whether the first text may not be the one that is answered. Rules of constraints hold for one text only."""
    return request.best_of > 1 and request.alternatives == 1 and request.constraints is None
