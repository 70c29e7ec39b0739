"""HumanEval Infilling through the resident engine: `python -m tests.bench.infilling --data PATH [--limit N]`.

Each row is filled the way `lacuna fill` fills a hole: the engine's text, then the rules for what is shown. A row
passes when the completed program and its tests run without error in a sandbox. One JSON line per row; the last line
is the summary. Rows already in `--out` are not measured again.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from functools import partial
from pathlib import Path
from time import perf_counter

from engine.protocol.messages import TEXTS_WEIGHED, Fill
from lsp_server.engine_client import Engine
from lsp_server.ghost_text import present
from tests.bench.measure import Row, measure_rows, options_parser, outcome
from tests.bench.sandbox import passes


def read_rows(path: Path, limit: int) -> list[Row]:
    """Rows of the data file, spread evenly over it when `limit` is smaller than their number."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if not limit or limit >= len(rows):
        return rows
    return [rows[index * len(rows) // limit] for index in range(limit)]


def shown(row: Row, raw: str) -> str:
    """The document after the engine's text went through the rules and was accepted."""
    document: str = row["prompt"] + row["suffix"]
    ghost = present(raw, document, len(row["prompt"]), "python", single_line=False, automatic=False)
    if ghost is None:
        return document
    return document[: ghost.start] + ghost.text + document[ghost.end :]


async def measure(engine: Engine, row: Row, *, raw: bool, best_of: int) -> Row:
    """Fill one row and run its tests."""
    started = perf_counter()
    request = Fill(row["task_id"], "python", row["prompt"], row["suffix"], max_tokens=256, best_of=best_of)
    done = await engine.submit(request)
    total = (perf_counter() - started) * 1000
    document = row["prompt"] + done.text + row["suffix"] if raw else shown(row, done.text)
    program = f"{document}\n{row['test']}\ncheck({row['entry_point']})\n"
    return {
        "task_id": row["task_id"],
        "split": row["split"],
        "passed": await asyncio.to_thread(passes, program),
        "exact": done.text.strip() == row["canonical_solution"].strip(),
        **outcome(done, total),
    }


def main() -> None:
    """Read the command line and run."""
    parser = options_parser("infilling", __doc__)
    parser.add_argument("--limit", type=int, default=0, help="measure only N rows, spread over the file")
    parser.add_argument("--raw", action="store_true", help="judge the engine's text as it is")
    parser.add_argument("--best-of", type=int, default=TEXTS_WEIGHED, help="texts the answer is chosen among")
    options = parser.parse_args()
    rows = read_rows(options.data, options.limit)
    asyncio.run(measure_rows(rows, "task_id", options, partial(measure, raw=options.raw, best_of=options.best_of)))


if __name__ == "__main__":
    main()
