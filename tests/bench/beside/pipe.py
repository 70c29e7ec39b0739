"""A worker process and the line of JSON objects it is asked by: `Worker` here, `serve` there.

A worker's own standard output is moved to standard error, so that a library that prints cannot break the line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psutil

from tests.bench.beside.neighbours import Moment, Watch

Answer = dict[str, Any]


class Worker:
    """A process that answers one question at a time. A context manager: the process ends with the block."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(environment) if environment is not None else None,
        )

    def ask(self, watch: Watch | None = None, **question: Any) -> Answer:
        """The answer to a question; `watch` is told what others used meanwhile. Raises RuntimeError if it ended."""
        process = psutil.Process(self._process.pid)
        before = Moment.now(process)
        answer = self._answer(question)
        if watch is not None:
            watch.add(before, Moment.now(process))
        return answer

    def _answer(self, question: Answer) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.module} ended with status {self._process.wait()}; its errors are above")
        answer: Answer = json.loads(line)
        return answer

    def close(self) -> None:
        """Let the process end, which it does when nobody can ask any more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(answer: Callable[[Answer], Answer]) -> None:
    """Answer questions until standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for line in sys.stdin:
            out.write(json.dumps(answer(json.loads(line))) + "\n")
            out.flush()


def peak_mb() -> float:
    """The most memory this process has had resident so far, mapped files included, in MB (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").split("\n"):
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) * 1024 / 1e6, 1)
    raise LookupError("this system does not tell how much memory a process had")
