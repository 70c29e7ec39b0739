"""What the quality benches share: a live engine, resumable JSON lines, pass rates. Run by hand, never by the suite."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.config import DEFAULT_MODEL
from engine.protocol.messages import Done
from lsp_server.engine_client import Engine

Row = dict[str, Any]
Measure = Callable[[Engine, Row], Awaitable[Row]]


@asynccontextmanager
async def live_engine(model: str) -> AsyncIterator[Engine]:
    """The resident engine, started when it is not running; left running afterwards."""
    from engine.cli.session import EngineAddress, connected_engine

    async with connected_engine(EngineAddress(model)) as engine:
        yield engine


def finished_rows(out: Path) -> dict[str, Row]:
    """Rows already measured, by `task_id`; a half-written last line is dropped."""
    rows: dict[str, Row] = {}
    if not out.exists():
        return rows
    for line in out.read_text(encoding="utf-8").split("\n"):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "task_id" in row:
            rows[row["task_id"]] = row
    return rows


def summary(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Rows and pass rate per split."""
    splits: dict[str, list[bool]] = {}
    for row in rows:
        splits.setdefault(row["split"], []).append(bool(row["passed"]))
    return {name: {"n": len(rows), "pass_rate": round(sum(rows) / len(rows), 4)} for name, rows in splits.items()}


def outcome(done: Done, total_ms: float) -> Row:
    """The columns every measured row has, from the engine's own stats."""
    stats = done.stats
    return {
        "completion": done.text,
        "stop": stats.stop,
        "passes": stats.passes,
        "tokens": stats.tokens,
        "route": stats.route,
        "drafts": stats.drafts,
        "ms_encode": stats.ms_encode,
        "ms_total": round(total_ms, 1),
    }


async def measure_rows(rows: Iterable[Row], key: str, options: argparse.Namespace, measure: Measure) -> None:
    """Measure the rows that `options.out` does not hold yet; print every row and then the summary."""
    known = finished_rows(options.out)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    measured = []
    async with live_engine(options.model) as engine:
        with options.out.open("a", encoding="utf-8") as out:
            for row in rows:
                result = known.get(row[key]) or await measure(engine, row)
                if row[key] not in known:
                    out.write(json.dumps(result) + "\n")
                    out.flush()
                measured.append(result)
                print(json.dumps(result), flush=True)
    print(json.dumps({"summary": summary(measured)}))


def options_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """The options both benches have."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.bench.{program}", description=description)
    parser.add_argument("--data", type=Path, required=True, help="rows as .jsonl (or .jsonl.gz)")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--out", type=Path, default=Path(f"tests/bench/out/{program}.jsonl"), help="rows so far")
    return parser
