"""The core the loop runs: a loaded model, its prompts and its router behind `job.Core`.

Owns no sockets and no scheduling. One `next()` on a run computes one chunk of the prompt or one denoising pass.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from engine.canvas import Canvas
from engine.choosing import Choosing, chooses
from engine.constraining import causal_rules
from engine.diffusion.constraints import Vocabulary
from engine.diffusion.constraints.causal import CausalRules
from engine.diffusion.denoise import Denoised, Watch, denoise
from engine.diffusion.obeying import denoise_obeying
from engine.diffusion.seeded import denoise_seeded
from engine.diffusion.stopping import cut_at_lines, cut_at_stop_text, decode_prefix
from engine.diffusion.verify_config import VerifyConfig
from engine.doubt import Doubt
from engine.foresight import likely_next
from engine.hole_by_hole import Glimpse, hole_by_hole
from engine.hole_glimpse import causal_glimpse
from engine.hole_order import HoleOrder
from engine.job import Monitored, Preparation, Run
from engine.job_record import Clock, Timing, draft_message, engine_facts
from engine.lead import Begun, settle_lead, settle_lead_and_go_on, worth_expecting
from engine.machine_costs import MachineCosts, TimedDenoiser
from engine.models.base import Context, Denoiser, Tokenizer
from engine.monitor import Course, Monitor
from engine.prompts import Prompt, expected_ids, fill_prompt, rewrite_prompt, warm_behind_opening
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Filled, Rewrite, Stats, Stop
from engine.quality import Gates, Verdict, faults
from engine.recent_answers import RecentAnswers
from engine.request_checks import check_request
from engine.rollout import WHOLE_SHARE, Rollout
from engine.router import Decision, decide
from engine.second_try import Attempt, Judging, with_second_try
from engine.text_gates import text_faults


@dataclass(frozen=True, slots=True)
class _Gap:
    """One gap of a job while it is denoised: who asks for it, where it grows, what it must obey, when it is late."""

    request: Fill | Rewrite
    context: Context
    rules: CausalRules | None
    timing: Timing
    course: Course
    doubt: Doubt

    @property
    def is_plain(self) -> bool:
        """Whether the passes hold the model's own say, which rules and the noise of a seed change."""
        return self.rules is None and not (isinstance(self.request, Rewrite) and self.request.seed)


class EngineCore:
    """Serves `Fill` and `Rewrite` with one `Denoiser`. Not thread-safe."""

    def __init__(
        self,
        model: Denoiser,
        *,
        costs: MachineCosts | None = None,
        threads: int = 0,
        config: VerifyConfig | None = None,
        hole_order: HoleOrder = "least_doubt",
        diffusion_share: float = WHOLE_SHARE,
        gates: Gates | None = None,
        clock: Clock = perf_counter,
    ) -> None:
        self._costs = costs or MachineCosts()
        self._model = TimedDenoiser(model, self._costs, perf_counter)
        self._threads = threads or os.cpu_count() or 1
        self._config = config or VerifyConfig()
        self._hole_order = hole_order
        self._clock = clock
        self._watch: Watch | None = None
        self._vocabulary: Vocabulary | None = None
        self._likely: tuple[Fill, ...] = ()
        self._recent = RecentAnswers()
        self._gates = gates or Gates()
        self._monitor = Monitor(Rollout(clock, diffusion_share))

    @property
    def monitored(self) -> Monitored:
        """What came of the jobs so far; see `job.MonitoredCore`."""
        return self._monitor.monitored

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

    def start(self, request: Fill | Rewrite) -> Run:
        """Begin a job; see `job.Core`."""
        return self._monitor.follow(request.id, partial(self._run, request, Timing(self._clock())))

    def prepare(self) -> Preparation:
        """Encode what the next request will likely begin with, then see whether passes still cost what was measured.

        See `job.PreparingCore`. One step is a few rows.
        """
        for request in self._likely:
            ids = fill_prompt(request, self._model.tokenizer, self._model.facts.special).ids
            context = self._model.spare_context_for(ids)
            if context is None:
                continue
            try:
                while context.length < len(ids):
                    self._model.encode(context, ids[context.length : context.length + self._config.idle_chunk])
                    yield None
            finally:
                self._model.release(context)
        yield from self._remeasure()

    def _remeasure(self) -> Preparation:
        """Measure again what passes cost, if that is due."""
        if self._costs.due:
            yield from self._costs.refresh(self._model, perf_counter)

    def _run(self, request: Fill | Rewrite, timing: Timing, course: Course) -> Run:
        check_request(request)
        if isinstance(request, Fill) and request.further:
            look = partial(self._look, timing, {}) if self._hole_order == "least_doubt" else None
            return (yield from hole_by_hole(request, partial(self._one, course, Timing(timing.started)), look))
        return (yield from self._one(course, timing, request))

    def _one(self, course: Course, timing: Timing, request: Fill | Rewrite, is_last: bool = True) -> Run:
        """One gap; the times of `timing` count from the start of the whole job.

        is_last: whether the text is whole with this gap filled; see `causal_rules`.
        """
        drafted = self._with_draft(request)
        prompt = self._prompt(drafted)
        rules = causal_rules(request, self._read_vocabulary, is_last=is_last) if isinstance(request, Fill) else None
        decision = self._decide(prompt, course)
        context = self._model.context_for(prompt.ids)
        gap = _Gap(request, context, rules, timing, course, Doubt(self._watch))
        others: tuple[str, ...] = ()
        begun = Begun(prompt)
        try:
            cached = context.length
            complete = yield from self._encode(context, prompt, timing)
            timing.encoded = timing.first_draft = self._clock()
            if complete and prompt.lead:
                begun = self._settle_lead(gap, prompt, drafted, decision)
                prompt = begun.prompt
                if begun.is_refused and drafted is not request:
                    # What was remembered fits all of it or nothing; a text that stands in the gap may fit further on.
                    begun = replace(begun, prompt=replace(prompt, gap=replace(prompt.gap, warm=())))
                timing.encoded = timing.first_draft = self._clock()
                yield None
            if not complete:
                made = Attempt(Denoised("", "deadline", 0, 0, ()), decision)
            elif cut_at_lines(prompt.opening, prompt.limits.max_lines) is not None:
                made = Attempt(Denoised("", "lines", 0, 0, ()), decision)
            else:
                made = yield from self._gated(gap, begun, decision)
                if isinstance(request, Fill):
                    choosing = Choosing(self._model, context, prompt, request, partial(self._expired, prompt, timing))
                    made = yield from choosing.best(made, partial(self._verdict, gap, prompt))
                    others = yield from choosing.alternatives(made)
        finally:
            self._model.release(context)
        stats = self._stats(prompt, made, cached, gap)
        text = prompt.whole(made.result.text)
        if isinstance(request, Fill):
            self._likely = likely_next(request, text)
            self._recent.remember(request, text)
        return Done(request.id, text, stats, others)

    def _decide(self, prompt: Prompt, course: Course) -> Decision:
        """The route of a gap, which its job's course notes."""
        costs, permit = self._costs.forward_ms, course.permit
        decision = decide(prompt.gap, self._config, costs, can_draft=self._model.facts.can_draft, permit=permit)
        course.route = decision.route
        return decision

    def _look(self, timing: Timing, known: dict[Prompt, Glimpse], request: Fill) -> Generator[None, None, Glimpse]:
        """How much doubt a gap leaves; known: what was seen in this job, by prompts without their drafts.

        Rules are not kept here: a text they forbid is a worse draft, no wrong one.
        """
        drafted = self._with_draft(request)
        prompt = self._prompt(drafted)
        key = replace(prompt, gap=replace(prompt.gap, warm=()))
        if key in known:
            return replace(known[key], passes=0, read=0)
        decision = decide(prompt.gap, self._config, self._costs.forward_ms, can_draft=self._model.facts.can_draft)
        context = self._model.context_for(prompt.ids)
        try:
            read = prompt.rows - context.length
            if not (yield from self._encode(context, prompt, timing)):
                return Glimpse()
            if prompt.lead:
                prompt = settle_lead(self._model, context, prompt)
                prompt = warm_behind_opening(prompt, drafted, self._model.tokenizer, self._model.facts.special)
                yield None

            def expired() -> bool:
                return self._expired(prompt, timing)

            seen = yield from causal_glimpse(self._model, context, prompt, decision.config, expired)
            known[key] = replace(seen, read=read)
            return known[key]
        finally:
            self._model.release(context)

    def _with_draft(self, request: Fill | Rewrite) -> Fill | Rewrite:
        """The request with what an earlier answer lets expect as its draft, where it brings none of its own."""
        if not isinstance(request, Fill) or request.draft or not self._config.warm_start:
            return request
        return replace(request, draft=self._recent.draft_for(request))

    def _settle_lead(self, gap: _Gap, prompt: Prompt, drafted: Fill | Rewrite, decision: Decision) -> Begun:
        """Bring the lead into the context, and with it what the draft of `drafted` lets expect."""
        tokenizer, special = self._model.tokenizer, self._model.facts.special
        if gap.rules is not None:
            return Begun(settle_lead(self._model, gap.context, prompt, heal=False))
        config = decision.config
        expected = expected_ids(prompt, drafted, tokenizer, special) if config.warm_start else ()
        room = min(config.width, prompt.limits.max_tokens)
        expected = worth_expecting(expected, len(prompt.lead), room, config.costs)
        begun = settle_lead_and_go_on(self._model, gap.context, prompt, expected, gap.doubt)
        return replace(begun, prompt=warm_behind_opening(begun.prompt, drafted, tokenizer, special))

    def _read_vocabulary(self) -> Vocabulary:
        """What each id writes, read once and only for who asks for constraints."""
        if self._vocabulary is None:
            special = self._model.facts.special.special
            self._vocabulary = Vocabulary.read(self._model.tokenizer, max(special) + 1, special, special)
        return self._vocabulary

    def _prompt(self, request: Fill | Rewrite) -> Prompt:
        """Lay the request out and make sure that prompt and gap fit the window together."""
        facts = self._model.facts
        if isinstance(request, Fill):
            prompt = fill_prompt(request, self._model.tokenizer, facts.special)
        else:
            prompt = rewrite_prompt(request, self._model.tokenizer, facts.special)
        # A pass may hold a whole draft and its masks beyond the settled tokens.
        spare = self._config.width + 1 + self._config.mask_anchors * self._config.mask_width
        room = facts.window_tokens - prompt.rows - spare
        if room < 1:
            raise EngineError(
                "window_exceeded",
                f"the text needs {prompt.rows} tokens, the model's window holds {facts.window_tokens}",
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

    def _gated(self, gap: _Gap, begun: Begun, decision: Decision) -> Generator[Draft | None, None, Attempt]:
        """Denoise the gap, and where gates speak against the diffusion route's text make it again causally."""
        prompt = begun.prompt

        def again(refused: Denoised | None, causal: Decision) -> Judging:
            gap.context.truncate(prompt.rows)
            known = () if refused is None else (*refused.settled, min(self._model.facts.special.end))
            anew = replace(prompt, gap=replace(prompt.gap, warm=known, searched=()))
            plain = gap.request if isinstance(gap.request, Fill) else replace(gap.request, seed=0)
            untold = replace(gap, request=plain, timing=Timing(gap.timing.started), doubt=Doubt())
            return self._judged(untold, Begun(anew), causal)

        first = partial(self._judged, gap, begun, decision)
        may_repeat = gap.rules is None
        return with_second_try(first, again, decision, gap.course, may_repeat=may_repeat, is_drawn=not gap.is_plain)

    def _judged(self, gap: _Gap, begun: Begun, decision: Decision) -> Judging:
        """Denoise the gap and say what speaks against the text."""
        result = yield from self._denoise(gap, begun, decision)
        return result, self._verdict(gap, begun.prompt, result, gap.doubt.confidence if gap.is_plain else None)

    def _verdict(self, gap: _Gap, prompt: Prompt, result: Denoised, confidence: float | None = None) -> Verdict:
        """What speaks against a text; nothing does where the deadline cut it off."""
        if result.stop == "deadline":
            return Verdict(confidence)
        holes = [Filled(prompt.whole(result.text), result.stop)]
        of_tokens = faults(result.settled, confidence, self._gates)
        return Verdict(confidence, (*of_tokens, *text_faults(gap.request, holes, self._gates)))

    def _passes(self, gap: _Gap, begun: Begun, decision: Decision) -> Generator[Canvas, None, Denoised]:
        prompt, request = begun.prompt, gap.request
        expired = partial(self._expired, prompt, gap.timing)
        model, context, limits, config = self._model, gap.context, prompt.limits, decision.config
        if isinstance(request, Rewrite) and request.seed:
            return denoise_seeded(model, context, prompt.gap, limits, config, expired, request.seed, self._watch)
        if gap.rules is None:
            return denoise(model, context, prompt.gap, limits, config, expired, gap.doubt, begun.ids)
        return denoise_obeying(model, context, prompt.gap, limits, config, expired, gap.rules, self._watch)

    def _denoise(self, gap: _Gap, begun: Begun, decision: Decision) -> Generator[Draft | None, None, Denoised]:
        passes = self._passes(gap, begun, decision)
        step, request, timing = 0, gap.request, gap.timing
        while True:
            try:
                canvas = next(passes)
            except StopIteration as finished:
                if step == 0:
                    timing.first_draft = self._clock()
                result: Denoised = finished.value
                return begun.counted(result)
            step += 1
            if step == 1:
                timing.first_draft = self._clock()
            yield self._draft(request, canvas, step, begun.prompt) if request.wants_drafts else None

    def _draft(self, request: Fill | Rewrite, canvas: Canvas, step: int, prompt: Prompt) -> Draft:
        tokenizer = self._model.tokenizer
        settled = prompt.opening.encode() + tokenizer.decode_bytes(canvas.settled_ids)
        text = decode_prefix(settled + tokenizer.decode_bytes(canvas.ids[canvas.free].tolist()))
        # What is guessed behind the end of the text is no part of it.
        cut = cut_at_stop_text(text, prompt.limits.stop_text)
        text = text if cut is None else cut
        # Of a text that may yet be left for another one nothing is settled.
        is_open = isinstance(request, Fill) and chooses(request)
        firm = 0 if is_open else min(len(decode_prefix(settled)), len(text))
        return draft_message(request.id, text, firm, step, prompt.limits.max_tokens)

    def _expired(self, prompt: Prompt, timing: Timing) -> bool:
        return timing.expired(self._clock(), prompt.limits.deadline_ms)

    def _stats(self, prompt: Prompt, made: Attempt, cached: int, gap: _Gap) -> Stats:
        result, timing = made.result, gap.timing
        stop: Stop = result.stop
        return Stats(
            route=made.decision.route,
            reason=made.decision.reason,
            stop=stop,
            passes=result.passes,
            tokens=result.tokens,
            prompt_tokens=prompt.rows,
            cached_tokens=cached,
            ms_encode=timing.ms(timing.encoded),
            ms_first_draft=timing.ms(timing.first_draft),
            ms_total=timing.ms(self._clock()),
            drafts=result.drafts,
            confidence=made.confidence,
            gates=made.gates,
            fallback=made.is_second,
        )
