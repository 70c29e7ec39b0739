"""The core the loop runs: a loaded model, its prompts and its router behind `job.Core`.

Owns no sockets and no scheduling. One `next()` on a run computes one chunk of the prompt or one denoising pass.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import replace
from time import perf_counter

from engine.alternatives import alternatives
from engine.canvas import Canvas
from engine.diffusion.denoise import Denoised, Watch, denoise
from engine.diffusion.stopping import decode_prefix
from engine.diffusion.verify_config import VerifyConfig
from engine.job import Run
from engine.job_record import Clock, Timing, draft_message, engine_facts
from engine.machine_costs import MachineCosts, TimedDenoiser
from engine.models.base import Context, Denoiser, Tokenizer
from engine.prompts import Prompt, fill_prompt, rewrite_prompt
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Found, Rewrite, Stats, Stop
from engine.request_checks import check_request
from engine.router import Decision, decide


class EngineCore:
    """Serves `Fill` and `Rewrite` with one `Denoiser`. Not thread-safe."""

    def __init__(
        self,
        model: Denoiser,
        *,
        costs: MachineCosts | None = None,
        threads: int = 0,
        config: VerifyConfig | None = None,
        clock: Clock = perf_counter,
    ) -> None:
        self._costs = costs or MachineCosts()
        self._model = TimedDenoiser(model, self._costs, perf_counter)
        self._threads = threads or os.cpu_count() or 1
        self._config = config or VerifyConfig()
        self._clock = clock
        self._watch: Watch | None = None

    @property
    def facts(self) -> Facts:
        """What the engine is, for `Ready`."""
        known = self._model.facts
        return engine_facts(known, known.adapter, self._threads, self._costs.forward_ms)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's, for who watches: passes are told in ids."""
        return self._model.tokenizer

    def watch(self, watch: Watch | None) -> None:
        """Tell `watch` every pass of the jobs that run from now on, None to stop. For looking at one job in-process."""
        self._watch = watch

    def remeasure(self) -> Generator[None, None, None]:
        """Measure again what passes cost, if that is due: work for idle time, one pass a step."""
        if self._costs.due:
            yield from self._costs.refresh(self._model, perf_counter)

    def start(self, request: Fill | Rewrite) -> Run:
        """Begin a job; see `job.Core`."""
        return self._run(request, Timing(self._clock()))

    def _run(self, request: Fill | Rewrite, timing: Timing) -> Run:
        check_request(request)
        prompt = self._prompt(request)
        decision = decide(prompt.gap, self._config, self._costs.forward_ms, can_draft=self._model.facts.can_draft)
        context = self._model.context_for(prompt.ids)
        others: tuple[str, ...] = ()
        try:
            cached = context.length
            complete = yield from self._encode(context, prompt, timing)
            timing.encoded = timing.first_draft = self._clock()
            if not complete:
                result = Denoised("", "deadline", 0, 0, ())
            else:
                result = yield from self._denoise(request, prompt, context, decision, timing)
                others = yield from self._alternatives(request, prompt, context, decision, result, timing)
        finally:
            self._model.release(context)
        stats = self._stats(prompt, decision, result, cached, timing)
        return Done(request.id, result.text, stats, others)

    def _prompt(self, request: Fill | Rewrite) -> Prompt:
        """Lay the request out and make sure that prompt and gap fit the window together."""
        facts = self._model.facts
        if isinstance(request, Fill):
            prompt = fill_prompt(request, self._model.tokenizer, facts.special)
        else:
            prompt = rewrite_prompt(request, self._model.tokenizer, facts.special)
        # A pass may hold a whole draft and its masks beyond the settled tokens.
        spare = self._config.width + 1 + self._config.mask_anchors * self._config.mask_width
        room = facts.window_tokens - len(prompt.ids) - spare
        if room < 1:
            raise EngineError(
                "window_exceeded",
                f"the text needs {len(prompt.ids)} tokens, the model's window holds {facts.window_tokens}",
                "select less text or shorten the instruction" if isinstance(request, Rewrite) else "select less text",
            )
        limits = replace(prompt.limits, max_tokens=min(prompt.limits.max_tokens, room))
        return replace(prompt, limits=limits)

    def _encode(self, context: Context, prompt: Prompt, timing: Timing) -> Generator[None, None, bool]:
        """Bring the prompt into the context chunk by chunk; False when the deadline fell first."""
        step = self._config.prompt_chunk
        while context.length < len(prompt.ids):
            if self._expired(prompt, timing):
                return False
            self._model.encode(context, prompt.ids[context.length : context.length + step])
            yield None
        return not self._expired(prompt, timing)

    def _denoise(
        self, request: Fill | Rewrite, prompt: Prompt, context: Context, decision: Decision, timing: Timing
    ) -> Generator[Draft | None, None, Denoised]:
        passes = denoise(
            self._model,
            context,
            prompt.gap,
            prompt.limits,
            decision.config,
            lambda: self._expired(prompt, timing),
            self._watch,
        )
        step = 0
        while True:
            try:
                canvas = next(passes)
            except StopIteration as finished:
                if step == 0:
                    timing.first_draft = self._clock()
                result: Denoised = finished.value
                return result
            step += 1
            if step == 1:
                timing.first_draft = self._clock()
            yield self._draft(request.id, canvas, step, prompt.limits.max_tokens) if request.wants_drafts else None

    def _alternatives(
        self,
        request: Fill | Rewrite,
        prompt: Prompt,
        context: Context,
        decision: Decision,
        first: Denoised,
        timing: Timing,
    ) -> Generator[Found | None, None, tuple[str, ...]]:
        """The other texts a fill asked for, as many as the deadline lets. All texts are told as they are found."""
        wanted = request.alternatives - 1 if isinstance(request, Fill) else 0
        if wanted < 1 or self._expired(prompt, timing):
            return ()

        def expired() -> bool:
            return self._expired(prompt, timing)

        yield Found(request.id, first.text)
        others = alternatives(self._model, context, prompt, first, wanted, decision.config, expired)
        told: tuple[str, ...] = ()
        while True:
            try:
                found = next(others)
            except StopIteration as finished:
                every: tuple[str, ...] = finished.value
                return every
            yield Found(request.id, first.text, found) if found != told else None
            told = found

    def _draft(self, job: str, canvas: Canvas, step: int, steps: int) -> Draft:
        tokenizer = self._model.tokenizer
        settled = tokenizer.decode_bytes(canvas.settled_ids)
        text = decode_prefix(settled + tokenizer.decode_bytes(canvas.ids[canvas.free].tolist()))
        return draft_message(job, text, len(decode_prefix(settled)), step, steps)

    def _expired(self, prompt: Prompt, timing: Timing) -> bool:
        return timing.expired(self._clock(), prompt.limits.deadline_ms)

    def _stats(self, prompt: Prompt, decision: Decision, result: Denoised, cached: int, timing: Timing) -> Stats:
        stop: Stop = result.stop
        return Stats(
            route=decision.route,
            reason=decision.reason,
            stop=stop,
            passes=result.passes,
            tokens=result.tokens,
            prompt_tokens=len(prompt.ids),
            cached_tokens=cached,
            ms_encode=timing.ms(timing.encoded),
            ms_first_draft=timing.ms(timing.first_draft),
            ms_total=timing.ms(self._clock()),
            drafts=result.drafts,
        )
