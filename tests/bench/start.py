"""How long an editor waits for server and engine, and what they hold: `python -m tests.bench.start [--json]`.

Each round starts a server process and a bare interpreter that does nothing, in turn. Times are wall time in ms
from the start of the process: to the reply to `initialize`, and to the reply to the first inline completion, in a
document opened at once (its engine is one that cannot be had, so that only the server is measured). Memory is the
process's resident set in MB right after that. The goals are those of the issues: 300 ms and 80 MB.

With `--engine N` the resident engine is started N times as well, from the converted form of the model, which must be
there; see `engine_start`. `--cold` has its files read from the disk. Its goals: ready in 3 s, at most 1.3 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import psutil

from engine.config import DEFAULT_MODEL
from tests.bench.engine_start import PEAK_MB, READY_MS, EngineRound, engine_round
from tests.fakes.lsp_messages import frame, note

INITIALIZED_MS, MEMORY_MB = 300.0, 80.0
URI = "file:///start.py"


@dataclass(frozen=True)
class Round:
    """One start of the server, and of the bare interpreter beside it."""

    initialized_ms: float
    answered_ms: float
    memory_mb: float
    interpreter_ms: float


def ask(process: subprocess.Popen[bytes], number: int, method: str, params: object) -> None:
    """Send a request and read until its reply."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
    process.stdin.flush()
    while True:
        length = 0
        while (line := process.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not length:
            raise SystemExit("the server ended")
        if json.loads(process.stdout.read(length)).get("id") == number:
            return


def started_server(command: Sequence[str], home: str) -> Round:
    """One round."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"LACUNA_HOME": home},
    )
    assert process.stdin is not None
    ask(process, 1, "initialize", {"processId": None, "capabilities": {}})
    initialized = time.perf_counter()
    document = {"uri": URI, "languageId": "python", "version": 1, "text": "total = "}
    process.stdin.write(frame(note("initialized", {})))
    process.stdin.write(frame(note("textDocument/didOpen", {"textDocument": document})))
    place = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 8}}
    ask(process, 2, "textDocument/inlineCompletion", place | {"context": {"triggerKind": 1}})
    answered = time.perf_counter()
    memory = psutil.Process(process.pid).memory_info().rss / 1e6
    ask(process, 3, "shutdown", None)
    process.stdin.write(frame(note("exit")))
    process.stdin.close()
    process.wait()
    return Round((initialized - began) * 1e3, (answered - began) * 1e3, memory, bare_interpreter())


def bare_interpreter() -> float:
    """Milliseconds an interpreter needs to start and end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (time.perf_counter() - began) * 1e3


def column_summary(rounds: Sequence[Round | EngineRound]) -> dict[str, dict[str, float]]:
    """Median and worst of each column."""
    columns = {name: [asdict(each)[name] for each in rounds] for name in asdict(rounds[0])}
    return {
        name: {"median": round(statistics.median(values), 1), "worst": round(max(values), 1)}
        for name, values in columns.items()
    }


def server_summary(count: int) -> tuple[dict[str, dict[str, float]], bool]:
    """`count` rounds of the server, and whether they are within the goals."""
    command = [sys.executable, "-m", "engine.cli.main", "lsp", "--model", "none"]
    with tempfile.TemporaryDirectory() as home:
        started_server(command, home)  # the first one compiles what was never imported
        result = column_summary([started_server(command, home) for _ in range(count)])
    return result, result["initialized_ms"]["median"] < INITIALIZED_MS and result["memory_mb"]["worst"] < MEMORY_MB


def engine_summary(count: int, model: str, *, cold: bool) -> tuple[dict[str, dict[str, float]], bool]:
    """`count` rounds of the engine, and whether they are within the goals."""
    result = column_summary([engine_round(model, cold=cold) for _ in range(count)])
    return result, result["ready_ms"]["median"] < READY_MS and result["peak_mb"]["worst"] <= PEAK_MB


def main() -> None:
    """Print medians and the worst round, and whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="starts of the server; 0 for none")
    parser.add_argument("--engine", type=int, default=0, help="starts of the engine")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="what the engine loads")
    parser.add_argument("--cold", action="store_true", help="the engine's files are read from the disk")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    parts: dict[str, tuple[dict[str, dict[str, float]], bool]] = {}
    if options.rounds:
        parts["server"] = server_summary(options.rounds)
    if options.engine:
        parts["engine"] = engine_summary(options.engine, options.model, cold=options.cold)
    if options.json:
        told = {name: {**columns, "ok": ok} for name, (columns, ok) in parts.items()}
        print(json.dumps({"rounds": options.rounds, "engine_rounds": options.engine, **told}))
        return
    for part, (columns, ok) in parts.items():
        for name, values in columns.items():
            print(f"{part} {name:16} median {values['median']:8.1f}   worst {values['worst']:8.1f}")
        print(f"{part}: {'within' if ok else 'outside'} the goals")


if __name__ == "__main__":
    main()
