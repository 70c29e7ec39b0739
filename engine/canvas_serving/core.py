"""The core of families that denoise whole canvases: a loaded `CanvasModel` and its prompts behind `job.Core`.

Owns no sockets and no scheduling. One `next()` on a run is a chunk of the known text or one denoising step; closing the
run abandons the job. The same request gives the same text: every request draws from generators
of its own, seeded alike. (What is resident of the known text may have been computed in other pieces; that moves logits
by the noise of floating point, which only a model that cannot decide makes visible.)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import torch

from engine.canvas_serving.finished_text import Finished, cut, draft_text, finished, first_open, settled_prefix
from engine.canvas_serving.holes import fit_together, holes_of
from engine.canvas_serving.prompt_style import PromptStyle
from engine.canvas_serving.prompts import CanvasPrompt, LayOut, styled
from engine.constraining import Surroundings, canvas_constraint
from engine.diffusion.constraint import Constraint
from engine.diffusion.constraints import Vocabulary
from engine.diffusion.parallel import CanvasResult, CanvasStep, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.shared_step import Offer
from engine.hole_by_hole import Glimpse, hole_by_hole
from engine.hole_order import HoleOrder
from engine.job import Monitored, Run
from engine.job_record import Clock, Timing, draft_message, engine_facts
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasContext, CanvasFacts, CanvasJob, CanvasModel, Known, Prediction, StepInput
from engine.monitor import Course, Monitor
from engine.protocol.messages import Done, Draft, Facts, Fill, Filled, Rewrite, Stats
from engine.quality import Verdict, faults
from engine.request_checks import check_request
from engine.text_gates import text_faults

SEED = 20_260
"""Of every request's first text; further texts, and those of a rewrite's own seed, draw from the seeds behind it."""
OTHERS_TOLD = 4
"""How many of the likeliest tokens of a place are told to who looks on."""
TRIES_PER_TEXT = 2
"""Some draws lead to a text that is there already."""
_LEAST_TEMPERATURE = 0.6
"""A family that takes the likeliest tokens needs chance for a second text."""


class CanvasCore:
    """Serves `Fill` and `Rewrite` with one `CanvasModel`. Not thread-safe."""

    def __init__(
        self,
        model: CanvasModel,
        *,
        lay_out: LayOut | None = None,
        config: SamplingConfig | None = None,
        threads: int = 0,
        hole_order: HoleOrder = "least_doubt",
        clock: Clock = perf_counter,
    ) -> None:
        self._model = model
        self._lay_out = lay_out or styled(PromptStyle(), model.tokenizer, model.facts)
        self._config = config or SamplingConfig()
        self._threads = threads or os.cpu_count() or 1
        self._hole_order = hole_order
        self._clock = clock
        self._watch: Callable[[CanvasStep], None] | None = None
        self._offer: Offer | None = None
        self._vocabulary: Vocabulary | None = None
        # There is no other route, so nothing holds jobs back from this one.
        self._monitor = Monitor()

    @property
    def monitored(self) -> Monitored:
        """What came of the jobs so far; see `job.MonitoredCore`."""
        return self._monitor.monitored

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's, for who watches: steps are told in ids."""
        return self._model.tokenizer

    def watch(self, watch: Callable[[CanvasStep], None] | None) -> None:
        """Tell `watch` every step towards the first text of the jobs that run from now on; see `WatchableCore`."""
        self._watch = watch

    def share(self, offer: Offer) -> None:
        """Offer every step of the jobs that run from now on; a run then pauses before it, see `SharedStep`."""
        self._offer = offer

    @property
    def model(self) -> CanvasModel:
        """The model that is served."""
        return self._model

    @property
    def sampling(self) -> SamplingConfig:
        """How its canvases are denoised."""
        return self._config

    @property
    def facts(self) -> Facts:
        """What the engine is, for `Ready`."""
        return engine_facts(self._model.facts, "", self._threads, ())

    def start(self, request: Fill | Rewrite) -> Run:
        """Begin a job; see `job.Core`."""
        return self._monitor.follow(request.id, partial(self._run, request, Timing(self._clock())))

    def _run(self, request: Fill | Rewrite, timing: Timing, course: Course) -> Run:
        check_request(request)
        course.route = "diffusion"
        if isinstance(request, Fill) and request.further and not self._fit_together(request):
            look = partial(self._look, timing, {}) if self._hole_order == "least_doubt" else None
            return (yield from hole_by_hole(request, partial(self._one, course, Timing(timing.started)), look))
        return (yield from self._one(course, timing, request))

    def _fit_together(self, request: Fill) -> bool:
        return fit_together(holes_of(request, self._model.tokenizer), self._model.facts)

    def _one(self, course: Course, timing: Timing, request: Fill | Rewrite, is_last: bool = True) -> Run:
        """One canvas, whatever number of holes it has; the times of `timing` count from the start of the whole job.

        is_last: whether the text is whole with these holes filled; see `canvas_constraint`.
        """
        prompt = self._lay_out(request)
        model = _Watched(self._model, self._clock)
        rule = self._rule(request, prompt, is_last=is_last)
        result = yield from self._denoise(request, prompt, model, rule, timing)
        first, *further = holes = finished(result, prompt, model.tokenizer)
        others = yield from self._alternatives(request, prompt, first, timing)
        verdict = _verdict(request, result, holes)
        course.refuse("diffusion", verdict.gates)
        stats = self._stats(prompt, model, result, holes, verdict, timing)
        return Done(request.id, first.text, stats, others, tuple(Filled(hole.text, hole.stop) for hole in further))

    def _look(self, timing: Timing, known: dict[CanvasJob, Glimpse], request: Fill) -> Generator[None, None, Glimpse]:
        """How much doubt a hole leaves: the mean entropy of its places after one step, of which nothing is kept.

        known: what was seen in this job. The known text stays resident where the family keeps it.
        """
        prompt = self._lay_out(request)
        if prompt.job in known:
            return replace(known[prompt.job], passes=0)
        steps = self._steps(prompt, self._model, self._config, SEED, timing)
        try:
            for step in steps:
                if step is not None:
                    entropy = step.entropy if step.entropy is not None else 1 - step.canvas.confidence
                    doubt = float(entropy[step.hole == 0].nan_to_num(math.inf).mean().nan_to_num(math.inf))
                    known[prompt.job] = Glimpse(doubt, passes=1)
                    return known[prompt.job]
                yield None
        finally:
            steps.close()
        return Glimpse()

    def _rule(self, request: Fill | Rewrite, prompt: CanvasPrompt, *, is_last: bool) -> Constraint | None:
        if not isinstance(request, Fill):
            return None
        around = Surroundings(request.prefix, request.suffix, prompt.limits.stop_text)
        return canvas_constraint(request, around, self._read_vocabulary, is_last=is_last)

    def _read_vocabulary(self) -> Vocabulary:
        """What each id writes, read once and only for who asks for constraints."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary.of(self._model.tokenizer, self._model.facts)
        return self._vocabulary

    def _denoise(
        self,
        request: Fill | Rewrite,
        prompt: CanvasPrompt,
        model: CanvasModel,
        rule: Constraint | None,
        timing: Timing,
    ) -> Generator[Draft | None, None, CanvasResult]:
        seed = request.seed if isinstance(request, Rewrite) else 0
        config = with_chance(self._config) if seed else self._config
        steps = self._steps(prompt, model, config, SEED + seed, timing, rule)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                result: CanvasResult = end.value
                timing.first_draft = timing.first_draft or self._clock()
                return result
            if step is None:  # a chunk of the known text
                yield None
                continue
            timing.first_draft = timing.first_draft or self._clock()
            if self._watch is not None:
                self._watch(step)
            yield self._draft(request.id, step, prompt) if request.wants_drafts else None

    def _steps(
        self,
        prompt: CanvasPrompt,
        model: CanvasModel,
        config: SamplingConfig,
        seed: int,
        timing: Timing,
        rule: Constraint | None = None,
    ) -> Generator[CanvasStep | None, None, CanvasResult]:
        generator = torch.Generator().manual_seed(seed)
        expired = self._expired(prompt, timing)
        others = OTHERS_TOLD if self._watch is not None else 0
        job, limits = prompt.job, prompt.limits
        return denoise_canvas(
            model,
            job,
            config,
            generator,
            limits=limits,
            expired=expired,
            constraint=rule,
            others=others,
            offer=self._offer,
        )

    def _alternatives(
        self, request: Fill | Rewrite, prompt: CanvasPrompt, first: Finished, timing: Timing
    ) -> Generator[None, None, tuple[str, ...]]:
        """The other texts a fill asked for: drawn with other seeds, as many as the deadline lets.

        Texts that are blank, equal another's but for blanks around them, or were cut off by the deadline are left out.
        """
        alone = isinstance(request, Fill) and not request.further and request.constraints is None
        wanted = request.alternatives - 1 if isinstance(request, Fill) and alone else 0
        expired = self._expired(prompt, timing)
        config = with_chance(self._config)
        texts = [first.text]
        for seed in range(SEED + 1, SEED + 1 + wanted * TRIES_PER_TEXT):
            if len(texts) > wanted or expired():
                break
            steps = self._steps(prompt, self._model, config, seed, timing)
            other = yield from self._followed(steps, prompt)
            if other.stop == "deadline":
                break
            if other.text.strip() and all(other.text.strip() != text.strip() for text in texts):
                texts.append(other.text)
        return tuple(texts[1:])

    def _followed(
        self, steps: Generator[CanvasStep | None, None, CanvasResult], prompt: CanvasPrompt
    ) -> Generator[None, None, Finished]:
        """Denoise to the end without telling of it."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return finished(end.value, prompt, self._model.tokenizer)[0]
            yield None

    def _draft(self, job: str, step: CanvasStep, prompt: CanvasPrompt) -> Draft:
        hole = first_open(step, len(prompt.hole_limits))
        limits = prompt.hole_limits[hole]
        ids = step.drafts()[hole][: limits.max_tokens]
        sure = min(settled_prefix(step, hole), len(ids))
        text, settled = draft_text(self._model.tokenizer, ids[:sure], ids[sure:])
        return draft_message(job, cut(text, limits)[0], settled, step.step, step.steps, hole)

    def _expired(self, prompt: CanvasPrompt, timing: Timing) -> Callable[[], bool]:
        return lambda: timing.expired(self._clock(), prompt.limits.deadline_ms)

    def _stats(
        self,
        prompt: CanvasPrompt,
        model: _Watched,
        result: CanvasResult,
        holes: Sequence[Finished],
        verdict: Verdict,
        timing: Timing,
    ) -> Stats:
        found = [fault.words for fault in verdict.faults]
        if lost := sum(hole.lost_bytes for hole in holes):
            found.append(f"{lost} bytes that make no character were left out")
        sampler = self._config.sampler.replace("_", " ")
        reason = f"this family denoises canvases; accepted by {sampler}, confidence {result.confidence:.2f}"
        return Stats(
            route="diffusion",
            reason="; ".join(dict.fromkeys([reason, *found])),
            stop=holes[0].stop,
            passes=result.steps,
            tokens=sum(len(hole.ids) for hole in holes),
            prompt_tokens=prompt.prompt_tokens,
            cached_tokens=model.cached,
            ms_encode=timing.ms(model.opened or timing.started),
            ms_first_draft=timing.ms(timing.first_draft),
            ms_total=timing.ms(self._clock()),
            confidence=None if math.isnan(result.confidence) else result.confidence,
            gates=verdict.gates,
        )


def _verdict(request: Fill | Rewrite, result: CanvasResult, holes: Sequence[Finished]) -> Verdict:
    """What speaks against the texts of a request's holes."""
    of_tokens = [fault for hole in holes for fault in faults(hole.ids, result.confidence)]
    of_texts = text_faults(request, [Filled(hole.text, hole.stop) for hole in holes])
    return Verdict(result.confidence, (*of_tokens, *of_texts))


class _Watched:
    """A `CanvasModel` that notes when the known text was first in place, and how much of it was resident already."""

    def __init__(self, model: CanvasModel, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self.opened = 0.0
        self.cached = self._cached = 0

    @property
    def facts(self) -> CanvasFacts:
        return self._model.facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    def open(self, known: Known) -> CanvasContext:
        context = self._model.open(known)
        self._cached = self._cached if self.opened else context.cached
        return context

    def read_on(self, context: CanvasContext) -> bool:
        left = self._model.read_on(context)
        if not left and not self.opened:
            self.opened, self.cached = self._clock(), self._cached
        return left

    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        return self._model.step(context, inputs, refresh=refresh)

    def commit(self, context: CanvasContext, ids: Sequence[int]) -> None:
        self._model.commit(context, ids)

    def close(self, context: CanvasContext) -> None:
        self._model.close(context)


def with_chance(config: SamplingConfig) -> SamplingConfig:
    """The configuration for a text that is to differ from the first: sampled, and not too cold."""
    start = max(config.temperature_start, _LEAST_TEMPERATURE)
    end = max(config.temperature_end, _LEAST_TEMPERATURE)
    return replace(config, deterministic=False, temperature_start=start, temperature_end=end)
