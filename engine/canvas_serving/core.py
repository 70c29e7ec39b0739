"""The core of families that denoise whole canvases: a loaded `CanvasModel` and its prompts behind `job.Core`.

Owns no sockets and no scheduling. One `next()` on a run is a chunk of the known text or one denoising step; closing the
run abandons the job. The same request gives the same text: every request draws from generators
of its own, seeded alike. (What is resident of the known text may have been computed in other pieces; that moves logits
by the noise of floating point, which only a model that cannot decide makes visible.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import torch

from engine.canvas_serving.prompt_style import PromptStyle
from engine.canvas_serving.prompts import CanvasPrompt, LayOut, styled
from engine.diffusion.parallel import CanvasResult, CanvasStep, denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits, cut_at_lines, cut_at_stop_text, decode_prefix
from engine.job import Run
from engine.job_record import Clock, Timing, draft_message, engine_facts
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasContext, CanvasFacts, CanvasModel, Known, Prediction, StepInput
from engine.protocol.messages import Done, Draft, Facts, Fill, Rewrite, Stats, Stop
from engine.quality import faults
from engine.request_checks import check_request

SEED = 20_260
"""Of every request's first text; further texts draw from the seeds behind it."""
OTHERS_TOLD = 4
"""How many of the likeliest tokens of a place are told to who looks on."""
TRIES_PER_TEXT = 2
"""Some draws lead to a text that is there already."""
_LEAST_TEMPERATURE = 0.6
"""A family that takes the likeliest tokens needs chance for a second text."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A text as it is answered. ids: the tokens behind it, which may reach beyond where it was cut.

    lost_bytes: bytes of tokens that make no character together, left out of the text.
    """

    text: str
    ids: tuple[int, ...]
    stop: Stop
    passes: int
    confidence: float
    lost_bytes: int = 0


class CanvasCore:
    """Serves `Fill` and `Rewrite` with one `CanvasModel`. Not thread-safe."""

    def __init__(
        self,
        model: CanvasModel,
        *,
        lay_out: LayOut | None = None,
        config: SamplingConfig | None = None,
        threads: int = 0,
        clock: Clock = perf_counter,
    ) -> None:
        self._model = model
        self._lay_out = lay_out or styled(PromptStyle(), model.tokenizer, model.facts)
        self._config = config or SamplingConfig()
        self._threads = threads or os.cpu_count() or 1
        self._clock = clock
        self._watch: Callable[[CanvasStep], None] | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's, for who watches: steps are told in ids."""
        return self._model.tokenizer

    def watch(self, watch: Callable[[CanvasStep], None] | None) -> None:
        """Tell `watch` every step towards the first text of the jobs that run from now on; see `WatchableCore`."""
        self._watch = watch

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
        return self._run(request, Timing(self._clock()))

    def _run(self, request: Fill | Rewrite, timing: Timing) -> Run:
        check_request(request)
        prompt = self._lay_out(request)
        model = _Watched(self._model, self._clock)
        first = yield from self._denoise(request, prompt, model, timing)
        others = yield from self._alternatives(request, prompt, first, timing)
        return Done(request.id, first.text, self._stats(prompt, model, first, timing), others)

    def _denoise(
        self, request: Fill | Rewrite, prompt: CanvasPrompt, model: CanvasModel, timing: Timing
    ) -> Generator[Draft | None, None, Finished]:
        steps = self._steps(prompt, model, self._config, SEED, timing)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                result: CanvasResult = end.value
                timing.first_draft = timing.first_draft or self._clock()
                return finished(result, prompt, model.tokenizer)
            if step is None:  # a chunk of the known text
                yield None
                continue
            timing.first_draft = timing.first_draft or self._clock()
            if self._watch is not None:
                self._watch(step)
            yield self._draft(request.id, step, prompt.limits) if request.wants_drafts else None

    def _steps(
        self, prompt: CanvasPrompt, model: CanvasModel, config: SamplingConfig, seed: int, timing: Timing
    ) -> Generator[CanvasStep | None, None, CanvasResult]:
        generator = torch.Generator().manual_seed(seed)
        expired = self._expired(prompt, timing)
        others = OTHERS_TOLD if self._watch is not None else 0
        return denoise_canvas(
            model, prompt.job, config, generator, limits=prompt.limits, expired=expired, others=others
        )

    def _alternatives(
        self, request: Fill | Rewrite, prompt: CanvasPrompt, first: Finished, timing: Timing
    ) -> Generator[None, None, tuple[str, ...]]:
        """The other texts a fill asked for: drawn with other seeds, as many as the deadline lets.

        Texts that are blank, equal another's but for blanks around them, or were cut off by the deadline are left out.
        """
        wanted = request.alternatives - 1 if isinstance(request, Fill) else 0
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
                return finished(end.value, prompt, self._model.tokenizer)
            yield None

    def _draft(self, job: str, step: CanvasStep, limits: Limits) -> Draft:
        ids = step.drafts()[0][: limits.max_tokens]
        sure = min(settled_prefix(step), len(ids))
        text, settled = draft_text(self._model.tokenizer, ids[:sure], ids[sure:])
        return draft_message(job, cut(text, limits)[0], settled, step.step, step.steps)

    def _expired(self, prompt: CanvasPrompt, timing: Timing) -> Callable[[], bool]:
        return lambda: timing.expired(self._clock(), prompt.limits.deadline_ms)

    def _stats(self, prompt: CanvasPrompt, model: _Watched, result: Finished, timing: Timing) -> Stats:
        found = [*faults(result.ids, result.confidence)]
        if result.lost_bytes:
            found.append(f"{result.lost_bytes} bytes that make no character were left out")
        sampler = self._config.sampler.replace("_", " ")
        reason = f"this family denoises canvases; accepted by {sampler}, confidence {result.confidence:.2f}"
        return Stats(
            route="diffusion",
            reason="; ".join([reason, *found]),
            stop=result.stop,
            passes=result.passes,
            tokens=len(result.ids),
            prompt_tokens=prompt.prompt_tokens,
            cached_tokens=model.cached,
            ms_encode=timing.ms(model.opened or timing.started),
            ms_first_draft=timing.ms(timing.first_draft),
            ms_total=timing.ms(self._clock()),
        )


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


def finished(result: CanvasResult, prompt: CanvasPrompt, tokenizer: Tokenizer) -> Finished:
    """The text of the first hole: at most `max_tokens`, cut at the stop text and the line limit, whole characters.

    Tokens settle independently of each other, so one that ends inside a character may be followed by one that does
    not go on with it. Only the bytes of the broken character are left out: what stands behind them is still meant.
    """
    ids, limits = result.parts[0], prompt.limits
    stop: Stop = result.stop
    if stop == "end" and prompt.is_cut_off(ids):
        stop = "budget"
    if len(ids) > limits.max_tokens:
        ids, stop = ids[: limits.max_tokens], "budget"
    data = tokenizer.decode_bytes(ids)
    whole = data.decode("utf-8", errors="ignore")
    text, reason = cut(whole, limits)
    lost = len(data) - len(whole.encode())
    return Finished(text, tuple(ids), reason or stop, result.steps, result.confidence, lost)


def cut(text: str, limits: Limits) -> tuple[str, Stop | None]:
    """`text` up to the stop text or behind its last allowed line, and which of them it was."""
    if (ended := cut_at_stop_text(text, limits.stop_text)) is not None:
        return ended, "end"
    if (lines := cut_at_lines(text, limits.max_lines)) is not None:
        return lines, "lines"
    return text, None


def settled_prefix(step: CanvasStep) -> int:
    """How many ids of the first hole's draft are settled from its left: earlier canvases, then this one's places."""
    mine = step.hole == 0
    states = step.canvas.settled[mine].tolist()
    ids = step.canvas.ids[mine].tolist()
    count = len(step.before[0])
    for is_settled, token in zip(states, ids, strict=True):
        if not is_settled:
            break
        count += token not in step.silent
    return count


def draft_text(tokenizer: Tokenizer, settled: Sequence[int], rest: Sequence[int]) -> tuple[str, int]:
    """Text of a draft and how many of its characters are settled.

    A token may end inside a character, and the one behind it need not go on with it: bytes that make no character are
    left out of the unsettled part, and the settled part ends in front of them.
    """
    sure = tokenizer.decode_bytes(settled)
    text = decode_prefix(sure)
    behind = sure[len(text.encode()) :] + tokenizer.decode_bytes(rest)
    return text + behind.decode("utf-8", errors="ignore"), len(text)
