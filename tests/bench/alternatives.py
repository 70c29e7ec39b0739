"""What alternatives cost beside the first text: `python -m tests.bench.alternatives [--wanted N] [--limit N]`.

Gaps are single lines and bodies in the standard library's own functions, each filled on the warm prompt of a request
before it, as an editor's second request is. One JSON line per gap, then the medians. Run by hand, on an idle machine.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig
from engine.protocol.messages import Done, Fill
from engine.runtime.environment import prepare_environment

if TYPE_CHECKING:
    from engine.core import EngineCore

MODULES = ("bisect", "textwrap", "shlex", "colorsys", "fnmatch", "heapq", "statistics")
MOST_TOKENS = 96


def gaps() -> Iterator[Fill]:
    """The last statement of a function behind its first word: the rest of its line, and all of it."""
    for module in MODULES:
        lines = Path(os.__file__).with_name(f"{module}.py").read_text(encoding="utf-8").split("\n")
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef) and len(node.body) > 1:
                last, start = node.body[-1], node.body[-1].lineno - 1
                word = lines[start][: last.col_offset + 3]
                before = "\n".join([*lines[max(0, start - 40) : start], word])
                for end, most in ((start + 1, 1), (last.end_lineno or start + 1, 0)):
                    after = "\n" + "\n".join(lines[end : end + 12])
                    yield Fill(f"{module}:{start}:{most}", "python", before, after, "", MOST_TOKENS, most)


def run(core: EngineCore, request: Fill) -> tuple[Done, float]:
    """The result, and the milliseconds it took."""
    began, steps = perf_counter(), core.start(request)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return ended.value, (perf_counter() - began) * 1000


def measure(core: EngineCore, request: Fill, wanted: int) -> dict[str, Any]:
    """One gap alone and with its alternatives, the prompt resident both times."""
    run(core, replace(request, max_tokens=1))
    _, alone_ms = run(core, request)
    done, all_ms = run(core, replace(request, alternatives=wanted))
    return {
        "gap": request.id,
        "first_ms": round(alone_ms, 1),
        "alternatives_ms": round(all_ms - alone_ms, 1),
        "texts": [done.text, *done.alternatives],
    }


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wanted", type=int, default=4, help="texts in all")
    parser.add_argument("--limit", type=int, default=40, help="gaps, spread over all of them")
    options = parser.parse_args()
    prepare_environment(os.environ)
    from engine.core import EngineCore
    from engine.startup import load_core

    core = load_core(EngineConfig(), lambda stage, fraction: None)
    if not isinstance(core, EngineCore):
        raise SystemExit("this measures the default model's family")
    every = list(gaps())
    chosen = every[:: max(1, len(every) // options.limit)][: options.limit]
    rows = [measure(core, request, options.wanted) for request in chosen]
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))
    for name in ("first_ms", "alternatives_ms"):
        low, middle, high = statistics.quantiles([row[name] for row in rows], n=4)
        print(f"{name}: median {middle:.0f}, quartiles {low:.0f} to {high:.0f}, of {len(rows)} gaps")
    print(f"texts: {sum(len(row['texts']) for row in rows)} of {options.wanted * len(rows)} asked for")


if __name__ == "__main__":
    main()
