"""How cost grows: `python -m tests.bench.scaling [--quick] [--only files …] [--out FILE]`.

Against the lines of the file, the tokens of the context and of the gap, the number of clients of one engine and of open
documents; and what server and engine use while nothing happens. Writes points as JSON and a picture of the curves
beside it (`pip install '.[bench]'`). What is measured is written at once; all of it takes about ten minutes on two
cores. Run it by hand on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from engine.config import DEFAULT_MODEL
from engine.runtime.environment import prepare_environment
from tests.bench.beside.machine import machine_facts
from tests.bench.growth import of_engine, of_server
from tests.bench.growth.plot import draw
from tests.bench.growth.point import Point

CURVES = ("model", "files", "documents", "clients", "idle")


def points(options: argparse.Namespace) -> Iterator[Point]:
    """Everything asked for, as it is measured."""
    if "model" in options.only:
        yield from of_engine.curves(options.model, options.threads, quick=options.quick)
    yield from of_server.curves(options.model, frozenset(options.only), options.idle, quick=options.quick)


def merged(before: Sequence[Point], fresh: Sequence[Point]) -> list[Point]:
    """Earlier points, without those of curves that were measured anew, and the fresh ones."""
    again = {point.curve for point in fresh}
    return [point for point in before if point.curve not in again] + list(fresh)


def read(file: Path) -> list[Point]:
    """The points of an earlier run, none when there was none."""
    if not file.exists():
        return []
    rows = json.loads(file.read_text(encoding="utf-8"))["points"]
    return [Point(**row | {"extra": tuple((name, value) for name, value in row["extra"])}) for row in rows]


def write(file: Path, every: Sequence[Point]) -> None:
    """Keep the points, with what machine they are of."""
    file.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": machine_facts(), "points": [asdict(point) for point in every]}
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scaling", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", choices=CURVES, default=CURVES, help="these curves; others are kept")
    parser.add_argument("--quick", action="store_true", help="every other size of each curve")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds of doing nothing")
    parser.add_argument("--out", type=Path, default=Path("tests/bench/out/scaling.json"))
    return parser.parse_args(arguments)


def main() -> None:
    """Read the command line, measure, write."""
    options = options_of()
    before, fresh = read(options.out), list[Point]()
    for point in points(options):
        print(json.dumps(asdict(point)), flush=True)
        fresh.append(point)
        write(options.out, merged(before, fresh))
    draw(merged(before, fresh), options.out.with_suffix(".png"))


if __name__ == "__main__":
    prepare_environment(os.environ)  # before torch is imported: its threads read it once
    main()
