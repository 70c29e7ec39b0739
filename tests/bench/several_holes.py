"""Several holes in one function: `python -m tests.bench.several_holes --data PATH --order least_doubt|top_down`.

Two or three stretches of one or two whole lines are punched out of each solution of HumanEval Infilling, at places that
follow from the seed, and asked for in one request. A row passes when the program with all of them filled and its tests
run without error in a sandbox; `exact` counts the holes that came back as they were. The model is loaded in this
process. One JSON line per row; the last line is the summary.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import get_args

from engine.config import DEFAULT_MODEL, EngineConfig
from engine.hole_order import HoleOrder
from engine.job import Core
from engine.protocol.messages import Done, Fill, FurtherHole
from engine.startup import load_core
from tests.bench.infilling import read_rows
from tests.bench.measure import Row
from tests.bench.sandbox import passes

MOST_LINES = 2


def programs(rows: list[Row]) -> dict[str, Row]:
    """One row for each function, with its whole text as `program`."""
    return {
        row["entry_point"]: row | {"program": row["prompt"] + row["canonical_solution"] + row["suffix"]} for row in rows
    }


def punched(program: str, entry_point: str, holes: int, dice: random.Random) -> tuple[list[str], list[str]] | None:
    """The known texts around `holes` holes, one more of them, and what was in each; None for too short a body.

    Indentation and the last line end stay outside. Between two holes there is a whole line at least.
    """
    tree = ast.parse(program)
    function = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == entry_point)
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    lines = program.split("\n")
    if not body:
        return None
    first, end = body[0].lineno - 1, function.end_lineno or len(lines)
    spans: list[tuple[int, int]] = []
    for _ in range(200):
        start = dice.randrange(first, end)
        stop = min(end, start + dice.randint(1, MOST_LINES))
        apart = all(stop < other[0] or start > other[1] for other in spans)
        if apart and lines[start].strip() and lines[stop - 1].strip():
            spans.append((start, stop))
        if len(spans) == holes:
            break
    else:
        return None
    known, texts, done = [], [], 0
    for start, stop in sorted(spans):
        indent = len(lines[start]) - len(lines[start].lstrip())
        before = "".join(f"{line}\n" for line in lines[done:start])
        known.append(("\n" if done else "") + before + lines[start][:indent])
        texts.append("\n".join(lines[start:stop])[indent:])
        done = stop
    return [*known, "\n" + "\n".join(lines[done:])], texts


def cases(rows: list[Row], seed: int, variants: int) -> Iterator[tuple[Row, list[str], list[str]]]:
    """Each function with two and with three holes, `variants` times each."""
    for name, row in sorted(programs(rows).items()):
        for holes in (2, 3):
            for variant in range(variants):
                dice = random.Random(f"{seed}/{name}/{holes}/{variant}")
                found = punched(row["program"], name, holes, dice)
                if found is not None:
                    yield row, *found


def measure(core: Core, number: int, row: Row, known: list[str], texts: list[str]) -> Row:
    """Fill the holes of one case and run its tests."""
    further = tuple(FurtherHole(island) for island in known[1:-1])
    request = Fill(str(number), "python", known[0], known[-1], max_tokens=96, further=further)
    began = perf_counter()
    done = finished(core, request)
    took = perf_counter() - began
    made = [hole.text for hole in done.holes]
    whole = known[0] + "".join(text + after for text, after in zip(made, known[1:], strict=True))
    return {
        "entry_point": row["entry_point"],
        "holes": len(texts),
        "passed": passes(f"{whole}\n{row['test']}\ncheck({row['entry_point']})\n"),
        "exact": sum(text.strip() == truth.strip() for text, truth in zip(made, texts, strict=True)),
        "stops": [hole.stop for hole in done.holes],
        "passes": done.stats.passes,
        "read": done.stats.prompt_tokens - done.stats.cached_tokens,
        "seconds": round(took, 3),
        "made": made,
    }


def finished(core: Core, request: Fill) -> Done:
    """The job's result."""
    run = core.start(request)
    while True:
        try:
            next(run)
        except StopIteration as end:
            done: Done = end.value
            return done


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.several_holes", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="rows as .jsonl (or .jsonl.gz)")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--order", choices=get_args(HoleOrder), default="least_doubt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variants", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="measure each so manieth case only")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    config = EngineConfig(model=options.model, threads=options.threads, hole_order=options.order)
    core = load_core(config, lambda stage, fraction: None)
    measured = []
    every = list(cases(read_rows(options.data, 0), options.seed, options.variants))
    for number, case in enumerate(every[:: options.every]):
        measured.append(measure(core, number, *case))
        print(json.dumps(measured[-1]), flush=True)
    holes = sum(row["holes"] for row in measured)
    print(
        json.dumps(
            {
                "order": options.order,
                "n": len(measured),
                "pass_rate": round(statistics.mean(row["passed"] for row in measured), 4),
                "exact_rate": round(sum(row["exact"] for row in measured) / holes, 4),
                "passes": sum(row["passes"] for row in measured),
                "read": sum(row["read"] for row in measured),
                "median_s": round(statistics.median(row["seconds"] for row in measured), 3),
                "total_s": round(sum(row["seconds"] for row in measured), 1),
            }
        )
    )


if __name__ == "__main__":
    main()
