"""One gap, filled causally and with drafts on the same model and the same resident prompt: `measure`.

The causal run is the rival, and its text the right one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from engine.diffusion.denoise import Denoised, denoise, greedy
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.lead import settle_lead
from engine.models.base import Context, Denoiser, Tokenizer
from engine.prompts import Prompt, fill_prompt
from engine.protocol.messages import Fill
from engine.router import Decision, decide
from engine.training.shards import Shard


@dataclass(frozen=True, slots=True)
class Run:
    """One filling of a gap. seconds: denoising only, the prompt being resident."""

    ids: tuple[int, ...]
    result: Denoised
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One gap, three ways. gap_tokens: of the true text. lead: the causal logits' lead where a draft's text parted."""

    name: str
    split: str
    gap_tokens: int
    causal: Run
    masks: Run
    every: Run
    partings: tuple[float, ...]

    @property
    def tokens(self) -> int:
        return self.causal.result.tokens


def run(model: Denoiser, context: Context, prompt: Prompt, config: VerifyConfig) -> Run:
    """Fill the gap on top of a context that holds the prompt, which it holds again afterwards."""
    began = perf_counter()
    passes = denoise(model, context, prompt.gap, prompt.limits, config, lambda: False)
    ids: tuple[int, ...] = ()
    while True:
        try:
            ids = next(passes).settled_ids
        except StopIteration as finished:
            result: Denoised = finished.value
            break
    seconds = perf_counter() - began
    context.truncate(prompt.rows)
    return Run(ids, result, seconds)


def measure(model: Denoiser, row: dict[str, Any], config: VerifyConfig, most_tokens: int) -> Measured:
    """One row, all ways, interleaved so that a machine that slows down slows all of them."""
    encode = model.tokenizer.encode
    gap_tokens = len(encode(row["canonical_solution"]))
    request = Fill(row["task_id"], row.get("language", "python"), row["prompt"], row["suffix"], max_tokens=most_tokens)
    prompt = fill_prompt(request, model.tokenizer, model.facts.special)
    context = model.context_for(prompt.ids)
    try:
        model.encode(context, prompt.ids[context.length :])
        prompt = settle_lead(model, context, prompt)
        causal = run(model, context, prompt, CAUSAL)
        masks = run(model, context, prompt, replace(config, ngram=False, warm_start=False))
        every = run(model, context, prompt, config)
        partings = tuple(
            parting(model, context, prompt, causal.ids, other.ids)
            for other in (masks, every)
            if other.result.text != causal.result.text
        )
        return Measured(row["task_id"], row["split"], gap_tokens, causal, masks, every, partings)
    finally:
        model.release(context)


def parting(model: Denoiser, context: Context, prompt: Prompt, causal: Sequence[int], other: Sequence[int]) -> float:
    """By how much the best logit led the second where two texts part: noise, or a fault of the sampler."""
    place = next(
        (i for i, (a, b) in enumerate(zip(causal, other, strict=False)) if a != b), min(len(causal), len(other))
    )
    for index, (_, logits) in enumerate(greedy(model, context, prompt.gap.pending, place + 1, adapted=True)):
        if index == place:
            best, second = logits.topk(2).values.tolist()
            context.truncate(prompt.rows)
            return float(best - second)
    context.truncate(prompt.rows)
    return float("inf")


def rows_of_shard(path: Path, tokenizer: Tokenizer, limit: int) -> list[dict[str, Any]]:
    """The gaps of a shard as rows, spread evenly over it when `limit` is smaller than their number.

    A gap whose tokens do not decode to text of their own (cut inside a character) is left out.
    """
    shard = Shard(path)
    count = min(limit or len(shard), len(shard))
    rows = []
    for place in range(count):
        index = place * len(shard) // count
        hole = shard[index]
        parts = (hole.prefix, hole.suffix, hole.middle)
        try:
            prompt, suffix, middle = (tokenizer.decode_bytes(part).decode() for part in parts)
        except UnicodeDecodeError:
            continue
        rows.append(
            {
                "task_id": f"{path.stem}/{index}",
                "split": hole.language,
                "prompt": prompt,
                "suffix": suffix,
                "canonical_solution": middle,
            }
        )
    return rows


def load(model: str, adapter: Path | None) -> tuple[Denoiser, Decision]:
    """The model as the engine loads it, and what its router chooses for fills on this machine."""
    from engine.calibration import measure as measure_costs
    from engine.models.loading import adapter_path, load_denoiser
    from engine.store.model_store import Store

    store = Store.of_user(os.environ)
    loaded = load_denoiser(
        store.path(model),
        store.converted_dir(model),
        name=model,
        adapter=adapter or adapter_path(),
        threads=os.cpu_count(),
    )
    costs = measure_costs(loaded, perf_counter).forward_ms
    request = Fill("route", "python", "", "", max_tokens=1)
    gap = fill_prompt(request, loaded.tokenizer, loaded.facts.special).gap
    decision = decide(gap, VerifyConfig(), costs, can_draft=loaded.facts.can_draft)
    return loaded, decision
