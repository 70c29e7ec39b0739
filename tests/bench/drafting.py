"""How well masked canvases draft: `python -m tests.bench.drafting --data PATH [--limit N] [--json]`.

Every gap is filled causally, drafted by masks alone and drafted by all sources (`drafted_gap`). Run by hand, never by
the suite, on a machine that is otherwise idle.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import DEFAULT_MODEL
from engine.runtime.environment import prepare_environment

if TYPE_CHECKING:
    from tests.bench.drafted_gap import Measured, Run

NOISE = 0.02
"""On the int8 path a row of one pass differs by less than this from the same row alone; so the greedy test says."""
MOST_TOKENS = 96
SHORT, LONG = 16, 64
TIMED_FROM = 24


def ratio_row(scenario: str, values: Sequence[float], goal: float, *, least: bool) -> dict[str, Any]:
    """A line of the result: the median, the quartiles, and whether the goal holds."""
    if len(values) < 2:
        return {"scenario": scenario, "ratio": None, "spread": None, "goal": goal, "ok": False}
    low, middle, high = statistics.quantiles(values, n=4)
    ok = middle >= goal if least else middle <= goal
    return {
        "scenario": scenario,
        "ratio": round(middle, 3),
        "spread": [round(low, 3), round(high, 3)],
        "goal": goal,
        "ok": ok,
    }


def share_row(scenario: str, hits: Sequence[bool], goal: float) -> dict[str, Any]:
    """A line of the result whose ratio is the share of gaps."""
    share = sum(hits) / len(hits) if hits else 0.0
    return {"scenario": scenario, "ratio": round(share, 4), "spread": None, "goal": goal, "ok": share >= goal}


def total_row(scenario: str, runs: Sequence[Run], goal: float) -> dict[str, Any]:
    """Tokens per pass over all gaps together, the gaps' quartiles as spread."""
    passes = sum(run.result.passes for run in runs)
    row = ratio_row(scenario, [run.result.tokens / run.result.passes for run in runs], goal, least=True)
    ratio = sum(run.result.tokens for run in runs) / passes if passes else 0.0
    return row | {"ratio": round(ratio, 3), "ok": ratio >= goal}


def stopped(gap: Measured) -> bool:
    """Whether the causal text ended by itself within the true length and eight tokens."""
    return gap.causal.result.stop == "end" and gap.tokens <= gap.gap_tokens + 8


def report(gaps: Sequence[Measured]) -> list[dict[str, Any]]:
    """The table's lines."""
    middling = [gap for gap in gaps if SHORT <= gap.tokens <= LONG]
    timed = [gap for gap in gaps if gap.tokens >= TIMED_FROM]
    fitting = [gap for gap in gaps if gap.gap_tokens + 8 <= MOST_TOKENS]
    return [
        total_row(f"tokens per pass, gaps of {SHORT}-{LONG}, masks alone", [gap.masks for gap in middling], 2.0),
        total_row(f"tokens per pass, gaps of {SHORT}-{LONG}, all sources", [gap.every for gap in middling], 2.8),
        ratio_row(
            f"decode time / causal, gaps of {TIMED_FROM}+",
            [gap.every.seconds / gap.causal.seconds for gap in timed],
            0.7,
            least=False,
        ),
        share_row("text equal to greedy", [all(lead < NOISE for lead in gap.partings) for gap in gaps], 1.0),
        share_row("stops within the gap's length + 8", [stopped(gap) for gap in fitting], 0.97),
    ]


def kept_by_source(runs: Sequence[Run]) -> dict[str, str]:
    """How many draft tokens of each source were offered and kept."""
    totals: dict[str, tuple[int, int]] = {}
    for one in runs:
        for source, offered, kept in one.result.drafts:
            before = totals.get(source, (0, 0))
            totals[source] = (before[0] + offered, before[1] + kept)
    return {source: f"{kept}/{offered}" for source, (offered, kept) in sorted(totals.items())}


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.drafting", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="rows as .jsonl(.gz), or a shard of gaps")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--adapter", type=Path, help="measure this adapter file instead of the shipped one")
    parser.add_argument("--limit", type=int, default=0, help="measure only N rows, spread over the file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    from tests.bench.drafted_gap import load, measure, rows_of_shard
    from tests.bench.infilling import read_rows

    model, decision = load(options.model, options.adapter)
    if options.data.suffix == ".safetensors":
        rows = rows_of_shard(options.data, model.tokenizer, options.limit)
    else:
        rows = read_rows(options.data, options.limit)
    gaps = []
    for row in rows:
        gaps.append(measure(model, row, decision.config, MOST_TOKENS))
        print(f"\r{len(gaps)}/{len(rows)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    show(gaps, decision.reason, as_json=options.json)


def show(gaps: Sequence[Measured], route: str, *, as_json: bool) -> None:
    """Print the table, or one object."""
    lines = report(gaps)
    machine = f"{platform.machine()}, {os.cpu_count()} cores; {route}"
    kept = {"masks": kept_by_source([gap.masks for gap in gaps]), "all": kept_by_source([gap.every for gap in gaps])}
    if as_json:
        print(json.dumps({"machine": machine, "rows": lines, "kept": kept}))
        return
    print(machine)
    for line in lines:
        verdict = "ok" if line["ok"] else "short"
        print(f"{line['scenario']:<50} {line['ratio']} {line['spread'] or ''} goal {line['goal']} {verdict}")
    print(f"draft tokens kept/offered: {kept}")


if __name__ == "__main__":
    prepare_environment(os.environ)  # before torch is imported: its threads read it once
    main()
