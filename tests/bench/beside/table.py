"""From what was measured to the table: ratios, spreads, goals. Pure.

A *measurement* is one request of one case as `side_by_side` wrote it down: what each engine took for it, and what was
found when its text was compared with plain greedy decoding.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.models.shape import PARTS, Qwen2Shape

Measurement = dict[str, Any]
# On the int8 path a row of one pass differs by less than this from the same row alone; so the greedy test says.
NOISE = 0.02
GOALS = {"cold": 0.50, "typing": 0.35, "rewrite, plain": 0.35, "rewrite, n-gram": 0.80, "decode": 1.00}
MEMORY_GOAL_GB, DECODE_GOAL, PREFILL_GOAL = 1.3, 0.60, 0.70


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. spread: quartiles. ok: whether the goal holds; False where nothing was measured."""

    scenario: str
    ratio: float | None
    spread: tuple[float, float] | None
    goal: float
    ok: bool


def row_of(scenario: str, values: Sequence[float], goal: float, *, least: bool = False) -> Row:
    """The median of `values` and its quartiles against a goal that is the most (or with `least` the least) allowed."""
    if not values:
        return Row(scenario, None, None, goal, ok=False)
    middle = statistics.median(values)
    spread = None
    if len(values) > 1:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        spread = (round(low, 3), round(high, 3))
    return Row(scenario, round(middle, 3), spread, goal, middle >= goal if least else middle <= goal)


def ratios(measured: Iterable[Measurement], scenario: str, rival: str) -> list[float]:
    """Ours ÷ rival's wall time, one for each request of a scenario."""
    return [one["ours"]["ms"] / one[rival]["ms"] for one in measured if one["scenario"] == scenario and one.get(rival)]


def decode_ratios(measured: Iterable[Measurement]) -> list[float]:
    """Ours ÷ rival's time for one token more behind a prompt that is encoded."""
    return [
        own_token_ms(one) / one["plain"]["timings"]["predicted_per_token_ms"]
        for one in measured
        if one["scenario"] == "decode"
    ]


def own_token_ms(one: Measurement) -> float:
    """Milliseconds of our own for each token of a measurement, its prompt's encoding not counted."""
    ours = one["ours"]
    return float((ours["ms"] - ours["ms_encode"]) / ours["tokens"])


def decode_shares(measured: Iterable[Measurement], shape: Qwen2Shape, bandwidth_gb_s: float) -> list[float]:
    """The share of the memory's bandwidth at which single tokens read the int8 weights, and nothing else counted."""
    size = layer_weights(shape) * shape.layers + shape.vocab * shape.hidden
    return [size / (own_token_ms(one) / 1000) / 1e9 / bandwidth_gb_s for one in measured if one["scenario"] == "decode"]


def prefill_shares(measured: Iterable[Measurement], shape: Qwen2Shape, gemm_gop_s: float) -> list[float]:
    """The share of the int8 rate that encoding a cold prompt reaches; only the layers' products are counted as work."""
    # Of the last layer nothing is needed of a prompt but its keys and values.
    out, inner = shape.part_size("qkv")
    work = 2 * (layer_weights(shape) * (shape.layers - 1) + out * inner)
    shares = []
    for one in measured:
        if one["scenario"] == "cold":
            tokens = one["ours"]["prompt_tokens"] - one["ours"]["cached_tokens"]
            shares.append(work * tokens / (one["ours"]["ms_encode"] / 1000) / 1e9 / gemm_gop_s)
    return shares


def layer_weights(shape: Qwen2Shape) -> int:
    """How many weights the four matrices of one layer have, which is their size in bytes too."""
    sizes = (shape.part_size(part) for part in PARTS)
    return sum(out * inner for out, inner in sizes)


def is_greedy(one: Measurement) -> bool:
    """Whether a measurement's text was checked and equals plain greedy decoding, but for ties within the noise."""
    check = one.get("check") or {"same_text": False}
    return check["same_text"] and all(lead < NOISE for _, lead in check["partings"])


def equality_row(measured: Sequence[Measurement]) -> Row:
    """The share of requests whose text is that of plain greedy decoding; one that was not checked counts as unequal."""
    equal = [is_greedy(one) for one in measured]
    share = sum(equal) / len(equal) if equal else None
    return Row("text equal to greedy, share", share and round(share, 4), None, 1.0, ok=share == 1.0)


def table(
    measured: Sequence[Measurement], peaks_mb: Sequence[float], limits: Measurement, shape: Qwen2Shape
) -> list[Row]:
    """All lines. `limits` is what `limits` answered, empty when it was not measured."""
    bandwidth, gemm = limits.get("bandwidth_gb_s"), limits.get("gemm_gop_s")
    decode = decode_shares(measured, shape, bandwidth) if bandwidth else []
    prefill = prefill_shares(measured, shape, gemm) if gemm else []
    peaks = [max(peaks_mb) / 1000] if peaks_mb else []
    return [
        row_of("cold", ratios(measured, "cold", "plain"), GOALS["cold"]),
        row_of("typing", ratios(measured, "typing", "plain"), GOALS["typing"]),
        row_of("rewrite, plain", ratios(measured, "rewrite", "plain"), GOALS["rewrite, plain"]),
        row_of("rewrite, n-gram", ratios(measured, "rewrite", "ngram"), GOALS["rewrite, n-gram"]),
        row_of("single-token decode", decode_ratios(measured), GOALS["decode"]),
        row_of("peak memory, GB", peaks, MEMORY_GOAL_GB),
        row_of("decode, share of memory bandwidth", decode, DECODE_GOAL, least=True),
        row_of("prefill, share of int8 rate", prefill, PREFILL_GOAL, least=True),
        equality_row(measured),
    ]


def details(measured: Sequence[Measurement]) -> dict[str, dict[str, float]]:
    """Medians behind the ratios, for each scenario: milliseconds and tokens of every engine."""
    found: dict[str, dict[str, float]] = {}
    for scenario in dict.fromkeys(one["scenario"] for one in measured):
        rows = [one for one in measured if one["scenario"] == scenario]
        numbers: dict[str, float] = {"requests": len(rows)}
        for engine in ("ours", "plain", "ngram"):
            answers = [one[engine] for one in rows if one.get(engine)]
            if answers:
                numbers[f"{engine}_ms"] = round(statistics.median(answer["ms"] for answer in answers), 1)
                numbers[f"{engine}_tokens"] = round(statistics.mean(answer["tokens"] for answer in answers), 1)
        numbers["prompt_tokens"] = statistics.median(one["ours"]["prompt_tokens"] for one in rows)
        numbers["cached_tokens"] = statistics.median(one["ours"]["cached_tokens"] for one in rows)
        numbers["encode_ms"] = round(statistics.median(one["ours"]["ms_encode"] for one in rows), 1)
        numbers["foreign"] = max(one.get("foreign", 0.0) for one in rows)
        numbers["passes"] = round(statistics.mean(one["ours"]["passes"] for one in rows), 1)
        found[scenario] = numbers
    return found
