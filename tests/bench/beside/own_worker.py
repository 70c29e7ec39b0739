"""Our engine's core in a process of its own, loaded as the engine loads it. Asked by `side_by_side`.

Each answer to `ask` is one request from receipt to the whole text, wall time; `check` walks over a text one token a
pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from engine.protocol.messages import Done, Fill, FurtherHole, Rewrite
from engine.runtime.environment import prepare_environment
from tests.bench.beside.pipe import Answer, peak_mb, serve

if TYPE_CHECKING:
    from engine.core import EngineCore
    from engine.diffusion.denoise import Pass
    from engine.models.base import Denoiser
    from engine.prompts import Prompt


@dataclass
class Settled:
    """The ids of the job that was watched last, its end token included."""

    special: frozenset[int]
    ids: list[int] = field(default_factory=list)

    def __call__(self, seen: Pass) -> None:
        kept = [candidate.token for candidate in seen.draft[: seen.accepted]]
        ids = [*seen.settled, *kept, seen.bonus]
        end = next((place for place, token in enumerate(ids) if token in self.special), len(ids))
        self.ids = ids[: end + 1]


@dataclass
class OwnEngine:
    """A core that drafts, one on the same weights that does not, and what is needed to look into both."""

    drafting: EngineCore
    causal: EngineCore
    model: Denoiser
    ready_s: float

    def ask(self, request: Fill | Rewrite, *, drafts: bool) -> Answer:
        """Run one request to its end."""
        core = self.drafting if drafts else self.causal
        settled = Settled(frozenset(self.model.facts.special.special))
        core.watch(settled)
        began = perf_counter()
        done = _finished(core, request)
        seconds = perf_counter() - began
        prompt = core._prompt(request)
        return {
            "ms": round(seconds * 1000, 3),
            "ms_encode": done.stats.ms_encode,
            "text": done.text,
            "ids": settled.ids,
            "tokens": len(settled.ids),
            "passes": done.stats.passes,
            "stop": done.stats.stop,
            "route": done.stats.route,
            "drafts": done.stats.drafts,
            "cached_tokens": done.stats.cached_tokens,
            "prompt_tokens": done.stats.prompt_tokens,
            "prompt": [*prompt.ids, *prompt.lead, prompt.gap.pending],
            "stop_text": prompt.limits.stop_text,
        }

    def check(self, request: Fill | Rewrite, ids: Sequence[int], text: str) -> Answer:
        """Where `ids` part from plain greedy decoding, and whether `text` is what `ids` say."""
        prompt = self.causal._prompt(request)
        partings, prompt = partings_of(self.model, prompt, ids)
        return {"partings": partings, "same_text": text_of(self.model, prompt, ids) == text}


def partings_of(model: Denoiser, prompt: Prompt, ids: Sequence[int]) -> tuple[list[tuple[int, float]], Prompt]:
    """(place, lead) wherever the model, asked one token a pass, chooses another id than `ids` hold behind `prompt`.

    lead: by how much its choice's logit exceeds the given id's. Each place is judged behind the ids given so far, so no
    parting at all means that `ids` are the greedy text. Also the prompt with its last word finished as the model does.
    """
    from engine.diffusion.denoise import allowed_ids
    from engine.diffusion.verify import PassLayout, build_rows
    from engine.lead import settle_lead

    allowed = allowed_ids(model)
    context = model.context_for(prompt.ids)
    found = []
    try:
        model.encode(context, prompt.ids[context.length :])
        prompt = settle_lead(model, context, prompt)
        pending = prompt.gap.pending
        for place, given in enumerate(ids):
            rows = build_rows(PassLayout(pending), context.length, model.facts.mask_id, adapted=prompt.gap.adapted)
            logits = model.step(context, rows)[0, :allowed]
            best = int(logits.argmax())
            if best != given:
                found.append((place, float(logits[best] - logits[given])))
            pending = given
    finally:
        model.release(context)
    return found, prompt


def text_of(model: Denoiser, prompt: Prompt, ids: Sequence[int]) -> str:
    """The text that settled ids stand for behind the opening of `prompt`, under its limits."""
    from engine.diffusion.stopping import cut_at_lines, cut_at_stop_text, decode_prefix

    text = decode_prefix(model.tokenizer.decode_bytes([token for token in ids if token not in _special(model)]))
    text = prompt.opening + text
    cut = cut_at_stop_text(text, prompt.limits.stop_text)
    if cut is None:
        cut = cut_at_lines(text, prompt.limits.max_lines)
    return text if cut is None else cut


def request_of(told: dict[str, Any]) -> Fill | Rewrite:
    """The request that was told as {"kind", fields…}."""
    fields = {name: value for name, value in told.items() if name != "kind"}
    if told["kind"] != "Fill":
        return Rewrite(**fields)
    return Fill(**fields | {"further": tuple(FurtherHole(**hole) for hole in fields["further"])})


def loaded(model: str, threads: int) -> OwnEngine:
    """Load the model the way the engine does, with this machine's measured costs."""
    began = perf_counter()
    from engine.calibration import Measured
    from engine.config import EngineConfig
    from engine.core import EngineCore
    from engine.diffusion.verify_config import CAUSAL
    from engine.machine_costs import MachineCosts
    from engine.startup import load_core

    core = load_core(EngineConfig(model=model, threads=threads), lambda stage, fraction: None)
    if not isinstance(core, EngineCore):
        raise SystemExit(f"{model} is not of the causal family, which this bench is about")
    ready = perf_counter() - began
    facts = core.facts
    costs = MachineCosts(measured=Measured(facts.forward_ms, steady=True))
    causal = EngineCore(core._model, costs=costs, threads=facts.threads, config=CAUSAL)
    return OwnEngine(core, causal, core._model, ready)


def _finished(core: EngineCore, request: Fill | Rewrite) -> Done:
    run = core.start(request)
    while True:
        try:
            next(run)
        except StopIteration as end:
            done: Done = end.value
            return done


def _special(model: Denoiser) -> frozenset[int]:
    return frozenset(model.facts.special.special)


def main() -> None:
    """Load the model that the command line names (model, threads) and answer."""
    engine = loaded(sys.argv[1], int(sys.argv[2]))

    def answer(question: Answer) -> Answer:
        match question["op"]:
            case "ask":
                return engine.ask(request_of(question["request"]), drafts=question["drafts"])
            case "check":
                return engine.check(request_of(question["request"]), question["ids"], question["text"])
            case "facts":
                facts = engine.drafting.facts
                return {
                    "forward_ms": facts.forward_ms,
                    "threads": facts.threads,
                    "precision": facts.precision,
                    "adapter": facts.adapter,
                    "ready_s": round(engine.ready_s, 3),
                    "peak_mb": peak_mb(),
                }
        raise ValueError(f"no such question: {question['op']}")

    serve(answer)


if __name__ == "__main__":
    prepare_environment(os.environ)  # before torch is imported: its threads read it once
    main()
