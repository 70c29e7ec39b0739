"""Our engine and llama.cpp side by side, on the same file: `python -m tests.bench.side_by_side [--json]`.

Both run as children of this process on the same cores, one request in turn, each with its own cache, greedy. The rival
is llama.cpp's server in the `xllamacpp` wheel (`pip install '.[bench]'`), plain and for rewrites also with its n-gram
speculation. Both get the same prompt as ids. Fills: the rival must write as many tokens as our text has, end token
included, whatever it would have written itself. Rewrites: each ends by itself, the rival at the latest with as many
tokens as ours. What is asked is in `beside/texts.py`; what is shown, in `beside/table.py`.

Measured requests are kept in `--out`, so that a run can be cut in pieces: `--seconds 60` begins nothing new after a
minute; the next call goes on, after what was asked last was asked again so that the caches are what they were. What was
measured while others used more than a little of the machine is not kept, and measured by the next call. `--stage time`
only measures, `check` only compares texts with plain greedy decoding (one token a pass, slow), `report` only prints;
all three by default. Run it by hand on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, sleep

from engine.config import DEFAULT_MODEL
from engine.models.gguf_file import GgufFile
from engine.protocol.messages import Fill, Rewrite
from engine.store import Store
from tests.bench.beside.machine import machine_facts
from tests.bench.beside.neighbours import MOST_FOREIGN, Watch
from tests.bench.beside.pipe import Answer, Worker
from tests.bench.beside.rival_worker import PLAIN, SPECULATIONS
from tests.bench.beside.store import Measurements
from tests.bench.beside.table import Row, details, table
from tests.bench.beside.texts import SCENARIOS, Case, cases

OWN, RIVAL, LIMITS = (f"tests.bench.beside.{name}" for name in ("own_worker", "rival_worker", "limits"))
# Threads that spin for a moment after their work must not do so in the other engine's time.
PAUSE_S = 0.05
QUICK_CASES, QUICK_REQUESTS = 2, 10


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call is to do."""

    model: str
    file: Path
    threads: int
    speculation: str
    scenarios: Sequence[str]
    quick: bool
    seconds: float
    most_foreign: float

    def wanted(self) -> list[Case]:
        """The cases, and of a quick plan a few of each scenario with their first requests."""
        found = [case for scenario in self.scenarios for case in cases(scenario)[: QUICK_CASES if self.quick else None]]
        return [replace(case, requests=case.requests[:QUICK_REQUESTS]) for case in found] if self.quick else found


@contextmanager
def engines(plan: Plan) -> Iterator[dict[str, Worker]]:
    """Every engine that the plan's scenarios need, loaded."""
    rivals = {"plain": PLAIN} | ({"ngram": plan.speculation} if "rewrite" in plan.scenarios else {})
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP_", "OMP_", "MKL_"))}
    with ExitStack() as stack:
        own = stack.enter_context(Worker(OWN, plan.model, str(plan.threads)))
        own.ask(op="facts")
        running = {"ours": own}
        for name, speculation in rivals.items():
            rival = Worker(RIVAL, str(plan.file), str(plan.threads), speculation, environment=bare)
            running[name] = stack.enter_context(rival)
            rival.ask(op="facts")
        yield running


def told(request: Fill | Rewrite) -> Answer:
    """A request as the worker reads it."""
    return {"kind": type(request).__name__, **asdict(request)}


def measured(scenario: str, request: Fill | Rewrite, running: dict[str, Worker], watch: Watch) -> Answer:
    """A request on every engine in turn; `watch` is told what others used of the machine meanwhile."""
    sleep(PAUSE_S)
    ours = running["ours"].ask(watch, op="ask", request=told(request), drafts=scenario != "decode")
    row = {"scenario": scenario, "ours": ours}
    rewriting = scenario == "rewrite"
    for name in ("plain", "ngram") if rewriting else ("plain",):
        sleep(PAUSE_S)
        row[name] = running[name].ask(
            watch,
            op="ask",
            prompt=ours["prompt"],
            tokens=ours["tokens"],
            whole=not rewriting,
            stop=ours["stop_text"] if rewriting else "",
        )
    return row | {"foreign": round(watch.foreign, 3)}


def time_cases(plan: Plan, kept: Measurements) -> None:
    """Measure what was not measured yet, until the plan's time is over."""
    began = monotonic()
    if not kept.limits and (found := limits(plan)):
        kept.keep_limits(found)
    missing = [case for case in plan.wanted() if kept.missing_of(case)]
    if not missing:
        return
    # Whatever has to be converted is converted by a process of its own: that is no part of what is measured.
    with Worker(OWN, plan.model, str(plan.threads)) as own:
        own.ask(op="facts")
    with engines(plan) as running:
        for case in missing:
            last = None
            for number in kept.missing_of(case):
                if plan.seconds and monotonic() - began > plan.seconds:
                    break
                if number and last != number - 1:
                    # What a run that was ended before had left in the caches.
                    measured(case.scenario, case.requests[number - 1], running, Watch())
                watch = Watch()
                row = measured(case.scenario, case.requests[number], running, watch)
                if is_quiet(f"{case.key}/{number}", watch, plan.most_foreign):
                    kept.keep({"key": f"{case.key}/{number}"} | row)
                last = number
        kept.keep_facts({name: worker.ask(op="facts") for name, worker in running.items()})


def limits(plan: Plan) -> Answer:
    """What the machine can do at most; nothing when others were at work."""
    watch = Watch()
    with Worker(LIMITS, str(plan.threads)) as worker:
        worker.ask(op="ready")
        found = worker.ask(watch, op="measure")
    return found if is_quiet("limits", watch, plan.most_foreign) else {}


def is_quiet(what: str, watch: Watch, most_foreign: float) -> bool:
    """Whether what was measured is to be kept; says so."""
    quiet = watch.foreign <= most_foreign
    said = "quiet" if quiet else "not kept, others are at work"
    print(f"{what}: {said} ({watch.foreign:.0%})", file=sys.stderr, flush=True)
    return quiet


def check_cases(plan: Plan, kept: Measurements) -> None:
    """Compare every text that was not compared yet with plain greedy decoding."""
    requests = {
        f"{case.key}/{number}": request for case in plan.wanted() for number, request in enumerate(case.requests)
    }
    missing = [one for one in kept.rows if "check" not in one and one["key"] in requests]
    if not missing:
        return
    with Worker(OWN, plan.model, str(plan.threads)) as own:
        for one in missing:
            request, ours = told(requests[one["key"]]), one["ours"]
            kept.keep_check(one, own.ask(op="check", request=request, ids=ours["ids"], text=ours["text"]))
            print(f"{one['key']} checked", file=sys.stderr, flush=True)


def show(plan: Plan, kept: Measurements, *, as_json: bool) -> None:
    """Print the table, or one object."""
    chosen = [one for one in kept.rows if one["scenario"] in plan.scenarios]
    peaks = {name: max(facts["peak_mb"] for facts in kept.facts[name]) for name in kept.facts}
    rows = table(chosen, [peaks["ours"]] if "ours" in peaks else [], kept.limits, GgufFile(plan.file).shape())
    more = {"peak_mb": peaks, "limits": kept.limits, "scenarios": details(chosen), "speculation": plan.speculation}
    if as_json:
        machine = machine_facts() | {"threads": plan.threads}
        print(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows], "details": more}))
        return
    for row in rows:
        print(line_of(row))
    print(json.dumps(more, indent=1))


def line_of(row: Row) -> str:
    """A line of the table as text."""
    if row.ratio is None:
        return f"{row.scenario:<36} not measured"
    spread = f"{row.spread[0]:.3f} to {row.spread[1]:.3f}" if row.spread else ""
    return f"{row.scenario:<36} {row.ratio:7.3f}  {spread:<18} goal {row.goal:.2f}  {'ok' if row.ok else 'short'}"


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.side_by_side", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=SCENARIOS, help="these scenarios")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_CASES} cases of each scenario, {QUICK_REQUESTS} requests of each"
    )
    parser.add_argument("--stage", choices=("time", "check", "report", "all"), default="all")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no case after this time; 0 for no limit")
    parser.add_argument("--most-foreign", type=float, default=MOST_FOREIGN, help="share of the machine others may use")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each engine")
    parser.add_argument("--speculation", choices=SPECULATIONS[1:], default="ngram_mod", help="of the rival")
    parser.add_argument("--out", type=Path, default=Path("tests/bench/out/side_by_side.jsonl"), help="measured so far")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(arguments)


def main() -> None:
    """Read the command line and run."""
    options = options_of()
    plan = Plan(
        options.model,
        Store.of_user(os.environ).locate(options.model).path,
        options.threads,
        options.speculation,
        options.only,
        options.quick,
        options.seconds,
        options.most_foreign,
    )
    kept = Measurements(options.out)
    if options.stage in ("time", "all"):
        time_cases(plan, kept)
    if options.stage in ("check", "all"):
        check_cases(plan, kept)
    if options.stage in ("report", "all"):
        show(plan, kept, as_json=options.json)


if __name__ == "__main__":
    main()
