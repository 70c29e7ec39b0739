"""What a step costs on which hardware: measured here, or published, or derived from one of them. Pure.

Every number names its source; `docs/fleet.md` lists them with links. Where a number was derived, the derivation is code
in this file. Milliseconds throughout.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_MEASURED = Path(__file__).parents[1] / "results" / "side_by_side.json"
# Canvases in a step and the milliseconds it took (median time between tokens): Qwen2.5-0.5B-Instruct, bf16, vLLM 0.23.0
# on one L4, 256 tokens of prompt and 128 of text. https://ai.wmx.dev/benchmarks
L4_STEPS = ((1, 5.1), (2, 5.2), (4, 5.3), (8, 5.5), (16, 6.0), (32, 7.1))
# From the same table: time to the first token of one request alone, and requests a second of 32 at once.
L4_FIRST_TOKEN_MS, L4_PROMPT, L4_TOKENS = 27.0, 256, 128
L4_RATE_AT, L4_REQUESTS_PER_S = 32, 29.5
# DiffusionGemma 26B-A4B, FP8, vLLM on one H100, one request at a time, 16 steps for each canvas of 256, 1024 tokens of
# prompt and 1024 of text, tokens a second. https://github.com/vllm-project/vllm/pull/46212
H100_TOKENS_PER_S, H100_STEPS, H100_CANVAS, H100_PROMPT, H100_TEXT = 1003.79, 16, 256, 1024, 1024
# The same model as NVFP4 on a DGX Spark: tokens a second of prose and of code alone, and of four requests together.
# https://ai-muninn.com/en/blog/dgx-spark-diffusiongemma-nvfp4-vllm
SPARK_ALONE, SPARK_OF_FOUR = (158.0, 143.0), 257.0
# Denoising steps until a canvas of code stands. https://github.com/ggml-org/llama.cpp/pull/24427
CODE_STEPS = 20


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What a step takes: `base` once, `canvas` for each canvas denoised in it, `prompt_token` for each token read.

    overhead: what a request waits for before it reaches the engine, without keeping the engine busy.
    """

    base: float
    canvas: float = 0.0
    prompt_token: float = 0.0
    overhead: float = 0.0

    def step_s(self, canvases: int, prompt_tokens: int) -> float:
        """Seconds of one step. One that only reads takes at least the weights' way through memory, `base`."""
        reading = self.prompt_token * prompt_tokens
        if not canvases:
            return max(self.base, reading) / 1000
        return (self.base + self.canvas * canvases + reading) / 1000


@dataclass(frozen=True, slots=True)
class Amount:
    """How many steps a text takes: always `mean`, or geometrically spread around it, one at least."""

    mean: float
    spread: Literal["fixed", "geometric"] = "geometric"

    def draw(self, rng: random.Random) -> int:
        """One text's steps."""
        if self.spread == "fixed" or self.mean <= 1:
            return max(1, round(self.mean))
        return 1 + int(math.log(1.0 - rng.random()) / math.log(1.0 - 1.0 / self.mean))


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of request: tokens to read where the person's context is resident and where it is not, then steps."""

    resident: int
    cold: int
    steps: Amount


@dataclass(frozen=True, slots=True)
class Hardware:
    """An engine on a machine. most: canvases in a step. contexts: places in files kept resident."""

    name: str
    costs: StepCosts
    fill: Task
    rewrite: Task
    most: int
    contexts: int
    dollars_per_hour: float


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(value at 0, slope) of the least-squares line. Raises ValueError for fewer than two places."""
    if len({x for x, _ in points}) < 2:
        raise ValueError("a line needs two places")
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - slope * mean_x, slope


def laptop() -> Hardware:
    """The default model on two cores, as `tests.bench.side_by_side` measured it (medians and means of `details`)."""
    measured = json.loads(_MEASURED.read_text(encoding="utf-8"))["details"]["scenarios"]
    cold, typing, decode, rewrite = (measured[name] for name in ("cold", "typing", "decode", "rewrite"))
    token = cold["encode_ms"] / (cold["prompt_tokens"] - cold["cached_tokens"])
    step = (decode["ours_ms"] - decode["encode_ms"]) / decode["passes"]
    return Hardware(
        "laptop: default model, 2 cores",
        StepCosts(step, 0.0, token),
        # A key reads the row of its line and heals a token: as many tokens as cost the same.
        Task(round(typing["encode_ms"] / token), round(typing["prompt_tokens"]), Amount(typing["passes"])),
        Task(round(rewrite["encode_ms"] / token), round(rewrite["encode_ms"] / token), Amount(rewrite["passes"])),
        most=1,
        contexts=13,  # of some 642 tokens each, in the memory for prompts that the README names
        dollars_per_hour=0.0,
    )


def l4() -> Hardware:
    """A causal model of the default's size on a small GPU, served by vLLM; a token a step, nothing drafted."""
    base, canvas = line_through(L4_STEPS)
    # 32 at once take so long for one: its prompt, and its share of the steps of its tokens.
    reading = 1000 / L4_REQUESTS_PER_S - L4_TOKENS * (base + canvas * L4_RATE_AT) / L4_RATE_AT
    token = reading / L4_PROMPT
    overhead = L4_FIRST_TOKEN_MS - max(base, reading) - (base + canvas)
    ours = laptop()
    return Hardware(
        "L4: 0.5B causal, bf16, vLLM",
        StepCosts(base, canvas, token, overhead),
        Task(ours.fill.resident, ours.fill.cold, Amount(_tokens("typing"))),
        Task(ours.rewrite.resident, ours.rewrite.cold, Amount(_tokens("rewrite"))),
        most=32,
        contexts=2000,
        dollars_per_hour=0.44,
    )


def h100() -> Hardware:
    """DiffusionGemma on a large GPU, served by vLLM, with its drafts shown from the first step as Lacuna does."""
    canvases = H100_TEXT / H100_CANVAS
    # A canvas is denoised, then read once more to be kept; the prompt costs what as many canvas tokens cost.
    passes = canvases * (H100_STEPS + 1) + H100_PROMPT / H100_CANVAS
    step = 1000 * H100_TEXT / H100_TOKENS_PER_S / passes
    of_four = 4 * sum(SPARK_ALONE) / len(SPARK_ALONE) / SPARK_OF_FOUR
    share = (of_four - 1) / 3
    ours = laptop()
    return Hardware(
        "H100: DiffusionGemma, FP8, vLLM",
        StepCosts(step * (1 - share), step * share, step / H100_CANVAS),
        Task(ours.fill.resident, ours.fill.cold, Amount(CODE_STEPS, "fixed")),
        # As many tokens as the measured rewrites have take two canvases.
        Task(ours.rewrite.resident, ours.rewrite.cold, Amount(2 * (CODE_STEPS + 1), "fixed")),
        most=4,  # what vLLM's recipe allows, for memory
        contexts=500,
        dollars_per_hour=2.50,
    )


def _tokens(scenario: str) -> float:
    measured = json.loads(_MEASURED.read_text(encoding="utf-8"))["details"]["scenarios"]
    return float(measured[scenario]["ours_tokens"])
