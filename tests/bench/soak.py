"""Random editors against real servers and the real engine: `python -m tests.bench.soak --minutes 60 --faults --json`.

With `--faults` two editors on one engine in a folder of its own, in which things go wrong on purpose
(`tests/fakes/soak_trouble.py`): prints requests, faults done, answers lost and wrong (which must be none), and how
memory grew.

Without, one editor: what `tests/e2e/test_soak.py` does with a scripted engine, for a time instead of a count: every
answer is judged, every text compared. Prints how long answers took by kind of question (an edit that waits for its
document's text included), the memory of server and engine at the start, half-way and at the end, their processor time,
and what they use in `--idle` seconds of doing nothing. Exits with 1 on any fault.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from engine.config import DEFAULT_MODEL
from engine.protocol.address import engine_address
from lsp_server.engine_client import EngineProcess
from tests.bench.measure import live_engine
from tests.bench.troubled_home import troubled_home
from tests.fakes.daemons import ended_engines
from tests.fakes.editor_model import EditorModel
from tests.fakes.soak import Soak, connected
from tests.fakes.soak_documents import OpenText
from tests.fakes.soak_trouble import Target
from tests.fakes.troubled_soak import Outcome, TroubledSoak

PATIENCE_S = 60.0
# Editors, and servers, of a run with faults.
EDITORS = 2
# Operations between two looks at the clock.
STRETCH = 25
# What a server may use in 30 s of doing nothing, in seconds of processor time (case T-ROB-7), and for any other time.
IDLE_CPU_SHARE = 0.3 / 30
# The engine keeps contexts up to a budget of its own; beyond that nothing may be added once it is warm.
MOST_ENGINE_GROWTH = 200_000_000


@dataclass(frozen=True)
class Sample:
    """One moment: resident memory in bytes and processor time in seconds, of server and engine."""

    moment: str
    operations: int
    server_rss: int
    engine_rss: int
    server_cpu: float
    engine_cpu: float
    at: float


class Bench:
    """One run and its samples."""

    def __init__(self, run: Soak, engine_pid: int) -> None:
        self.run = run
        self.samples: list[Sample] = []
        self._engine = psutil.Process(engine_pid)

    def sample(self, moment: str) -> Sample:
        """Look at both processes."""
        server, engine = self.run.process, self._engine
        rss, cpu = (server.memory_info().rss, engine.memory_info().rss), (_cpu(server), _cpu(engine))
        taken = Sample(moment, self.run.editor.done.total(), *rss, *cpu, time.perf_counter())
        self.samples.append(taken)
        return taken

    async def operate(self, seconds: float) -> None:
        """Random operations until the time is over, then a checkpoint."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            await self.run.editor.operate(STRETCH)
        await self.run.checkpoint()

    async def rest(self, seconds: float) -> None:
        """Do nothing, with a document open and a question just answered."""
        editor = self.run.editor
        document = OpenText("file:///soak/app/rest.py", "python", 1, EditorModel("total = ", editor.encoding))
        editor.choices.calm()
        self.run.client.notify("textDocument/didOpen", {"textDocument": document.item})
        editor.asker.inline_at(document, (0, 8), invoked=False, beside_menu=False)
        await editor.asker.settle()
        before = self.sample("rest begins")
        await asyncio.sleep(seconds)
        after = self.sample("rest ends")
        if (used := after.server_cpu - before.server_cpu) > IDLE_CPU_SHARE * seconds:
            self.run.faults.append(f"the server used {used:.2f} s of processor time in {seconds:.0f} s of rest")

    def judge_engine(self) -> None:
        """The engine's memory once it is warm."""
        warm, end = (next(each for each in self.samples if each.moment == name) for name in ("half-way", "end"))
        if (grown := end.engine_rss - warm.engine_rss) > MOST_ENGINE_GROWTH:
            self.run.faults.append(f"the engine grew by {grown / 1e6:.0f} MB")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def ready(run: Soak) -> None:
    """Wait until the server has found the engine; a document open and enabled makes it look for one."""
    async with asyncio.timeout(PATIENCE_S):
        while (await run.client.request("workspace/executeCommand", {"command": "lacuna.status"}))["state"] != "ready":
            await asyncio.sleep(0.1)
    run.editor.hear()


async def bench(options: argparse.Namespace) -> Bench:
    """The whole run."""
    async with live_engine(options.model) as engine:
        assert engine.facts is not None
        run = await connected(options.seed, PATIENCE_S, model=options.model)
        measured = Bench(run, engine.facts.pid)
        try:
            await run.begin()
            await ready(run)
            measured.sample("start")
            await measured.operate(30 * options.minutes)
            measured.sample("half-way")
            await measured.operate(30 * options.minutes)
            measured.sample("end")
            run.judge_memory()
            measured.judge_engine()
            if options.idle:
                await measured.rest(options.idle)
            await run.end()
        finally:
            run.client.link.kill()
            await run.client.wait()
    return measured


def latency_table(run: Soak) -> list[str]:
    """A line for each kind of question: how many, median, 95th percentile and longest, in milliseconds; outcomes."""
    lines = [f"{'question':<16}{'count':>6}{'median':>9}{'p95':>9}{'longest':>9}  outcomes"]
    for kind, times in sorted(run.editor.asker.latencies.items()):
        ordered = sorted(times)
        p95 = ordered[min(len(ordered) - 1, round(len(ordered) * 0.95))]
        figures = "".join(f"{1000 * each:9.1f}" for each in (statistics.median(ordered), p95, ordered[-1]))
        counts = run.editor.asker.counts
        outcomes = (f"{name[len(kind) + 1 :]} {n}" for name, n in sorted(counts.items()) if _is_of(name, kind))
        lines.append(f"{kind:<16}{len(times):>6}{figures}  {', '.join(outcomes)}")
    return lines


def _is_of(name: str, kind: str) -> bool:
    return name.rpartition(" ")[0] == kind


def process_table(samples: Sequence[Sample]) -> list[str]:
    """A line for each moment: memory, and the share of one core used since the moment before."""
    lines = [f"{'moment':<14}{'operations':>11}{'server MB':>11}{'engine MB':>11}{'server CPU':>12}{'engine CPU':>12}"]
    for number, each in enumerate(samples):
        before = samples[max(number - 1, 0)]
        passed = each.at - before.at
        shares = [(each.server_cpu - before.server_cpu), (each.engine_cpu - before.engine_cpu)]
        told = "".join(f"{100 * share / passed:11.1f}%" if passed else f"{'':>12}" for share in shares)
        memory = f"{each.server_rss / 1e6:11.1f}{each.engine_rss / 1e6:11.1f}"
        lines.append(f"{each.moment:<14}{each.operations:>11}{memory}{told}")
    return lines


async def troubled(options: argparse.Namespace) -> Outcome:
    """The run with faults."""
    with troubled_home(options.model) as (home, cache), ended_engines(home, "engine"):
        runs = [await connected(options.seed + number, PATIENCE_S, model=options.model) for number in range(EDITORS)]
        engine = EngineProcess(options.model, client="canary")
        target = Target(engine_address(options.model, os.environ), cache, runs)
        try:
            await engine.ready()
            soak = TroubledSoak(target, engine, options.seed, (options.every / 2, options.every * 1.5))
            return await soak.run(options.minutes)
        finally:
            await engine.close()
            for run in runs:
                run.client.link.kill()
                await run.client.wait()


def report_trouble(outcome: Outcome) -> list[str]:
    """Lines for a person."""
    mib = [f"{size / 1e6:.0f} MB ({slope / 1e6:+.2f} MB a minute)" for size, slope in _servers(outcome)]
    return [
        f"{outcome.minutes:.1f} min, {outcome.operations} operations, {outcome.questions} questions to the servers, "
        f"{outcome.engine_questions} to the engine itself (refused: {outcome.engine_refusals or 'none'})",
        f"faults done: {sum(outcome.trouble.values())} {outcome.trouble}",
        f"engines: {outcome.engines}, longest time without an answer of any: {outcome.longest_outage_s:.1f} s",
        f"servers: {', '.join(mib)}; engine at most {outcome.engine_rss_most / 1e6:.0f} MB",
        f"lost: {len(outcome.lost)}, wrong: {len(outcome.wrong)}",
        *outcome.faults,
    ]


def _servers(outcome: Outcome) -> list[tuple[int, float]]:
    return list(zip(outcome.server_rss, outcome.server_slopes, strict=True))


def main() -> int:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to operate (default: %(default)s)")
    parser.add_argument("--faults", action="store_true", help="let things go wrong on purpose")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two faults (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object (with --faults)")
    parser.add_argument("--idle", type=float, default=30.0, help="how long to do nothing afterwards, 0 for not at all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    options = parser.parse_args()
    if options.faults:
        outcome = asyncio.run(troubled(options))
        print(json.dumps(outcome.as_json()) if options.json else "\n".join(report_trouble(outcome)))
        return 1 if outcome.faults else 0
    measured = asyncio.run(bench(options))
    run = measured.run
    print(f"seed {options.seed}, {run.editor.encoding}, operations: {dict(run.editor.done.most_common())}")
    print("\n".join(["", *latency_table(run), "", *process_table(measured.samples), ""]))
    for checkpoint in run.checkpoints:
        print(checkpoint)
    print(f"{len(run.faults)} faults", *run.faults, sep="\n")
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
