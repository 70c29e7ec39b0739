"""Selection rewrites through the resident engine: `python -m tests.bench.edits --data PATH`.

Each row is rewritten the way `lacuna rewrite` does it. A row passes when the edited file followed by its test, saved
as a file, runs without error in a sandbox. One JSON line per row; the last line is the summary.
"""

from __future__ import annotations

import asyncio
import json
from time import perf_counter

from engine.protocol.messages import Rewrite
from lsp_server.engine_client import Engine
from lsp_server.rewrite_text import clean_rewrite
from tests.bench.measure import Row, measure_rows, options_parser, outcome
from tests.bench.sandbox import passes


def split_selection(row: Row) -> tuple[str, str, str]:
    """Text before, inside and after the row's lines (1-based, both included)."""
    lines = [line + "\n" for line in row["before"].removesuffix("\n").split("\n")]
    first, last = row["lines"]
    return "".join(lines[: first - 1]), "".join(lines[first - 1 : last]), "".join(lines[last:])


async def measure(engine: Engine, row: Row) -> Row:
    """Rewrite one row and run its test."""
    before, selection, after = split_selection(row)
    started = perf_counter()
    request = Rewrite(row["id"], row["language"], before, selection, after, row["instruction"])
    done = await engine.submit(request)
    total = (perf_counter() - started) * 1000
    text = clean_rewrite(done.text, before, selection, after, row["language"])
    edited = before + (selection if text is None else text) + after
    return {
        "task_id": row["id"],
        "split": "edits",
        "passed": await asyncio.to_thread(passes, f"{edited}\n{row['test']}\n"),
        **outcome(done, total),
    }


def main() -> None:
    """Read the command line and run."""
    options = options_parser("edits", __doc__).parse_args()
    rows = [json.loads(line) for line in options.data.read_text(encoding="utf-8").split("\n") if line]
    asyncio.run(measure_rows(rows, "id", options, measure))


if __name__ == "__main__":
    main()
