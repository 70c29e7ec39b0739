"""A core without a model: it does what the request's own text says, one small step at a time.

`prefix` (or a rewrite's `instruction`) holds words like `steps=3 delay=0.01 text=hello fail=window_exceeded`; what is
not said has the defaults of `Script`. With `SCRIPTED_TRACE` naming a file, every step is appended to it as a line
`<job id> <step>`, so a test can count what a process really computed.

`python -m tests.fakes.scripted_core --model NAME` is a daemon with this core; `SCRIPTED_LOAD` scripts its loading
(`seconds=0.2`, `fail=model_missing`, `crash=1`, `kill=9`) and what it says of itself (`version=0.0.1`).
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import engine
from engine.config import EngineConfig, read_config
from engine.job import Run
from engine.loop import CoreFactory
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Rewrite, Stats
from engine.service import serve


@dataclass(frozen=True, slots=True)
class Script:
    """How one job goes. `steps` of 0 never ends; `fail` is a failure kind, or `crash` for an unforeseen fault."""

    steps: int = 2
    delay: float = 0.0
    text: str = "filled"
    fail: str = ""


def parse_script(words: str) -> Script:
    """The script in a request's text; words that are no `key=value` of a script are ignored."""
    pairs = dict(word.split("=", 1) for word in words.split() if "=" in word)
    return Script(
        steps=int(pairs.get("steps", 2)),
        delay=float(pairs.get("delay", 0)),
        text=pairs.get("text", "filled"),
        fail=pairs.get("fail", ""),
    )


class ScriptedCore:
    """Implements `engine.job.Core`. `computed` counts the steps per job id, `abandoned` holds the closed ones."""

    def __init__(self, model: str = "scripted", trace: Path | None = None, version: str = engine.__version__) -> None:
        self._model = model
        self._version = version
        self._trace = trace
        self.computed: dict[str, int] = {}
        self.order: list[str] = []
        self.abandoned: list[str] = []

    @property
    def facts(self) -> Facts:
        return Facts(self._model, "scripted", "cpu", "fp32", "", 4096, 1, ((1, 1.0),), self._version, os.getpid())

    def start(self, request: Fill | Rewrite) -> Run:
        script = parse_script(request.prefix if isinstance(request, Fill) else request.instruction)
        if script.fail == "bad_request":
            raise EngineError("bad_request", "scripted refusal", "nothing to do")
        return self._run(request, script)

    def _run(self, request: Fill | Rewrite, script: Script) -> Run:
        step = 0
        try:
            while script.steps == 0 or step < script.steps:
                step += 1
                self._note(request.id, step)
                time.sleep(script.delay)
                _maybe_fail(script)
                yield Draft(request.id, script.text[: step * 2], step, step, script.steps)
        except GeneratorExit:
            self.abandoned.append(request.id)
            raise
        stats = Stats("causal", "scripted", "end", step, step, 1, 0, 0.0, 0.0, 0.0)
        return Done(request.id, script.text, stats)

    def _note(self, job_id: str, step: int) -> None:
        self.computed[job_id] = step
        self.order.append(job_id)
        if self._trace is not None:
            with self._trace.open("a", encoding="utf-8") as file:
                file.write(f"{job_id} {step}\n")


def _maybe_fail(script: Script) -> None:
    if script.fail == "crash":
        raise RuntimeError(f"unforeseen: {script.text}")
    if script.fail:
        raise EngineError(script.fail, "scripted failure", "nothing to do")


def scripted_factory(config: EngineConfig, env: Mapping[str, str]) -> CoreFactory:
    """A core factory that loads as `SCRIPTED_LOAD` in `env` says."""
    load = dict(word.split("=", 1) for word in env.get("SCRIPTED_LOAD", "").split())
    trace = Path(env["SCRIPTED_TRACE"]) if "SCRIPTED_TRACE" in env else None

    def factory(progress: Callable[[str, float], None]) -> ScriptedCore:
        rounds = round(float(load.get("seconds", 0)) / 0.02)
        for done in range(rounds):
            progress("weights", done / rounds)
            time.sleep(0.02)
        if "fail" in load:
            raise EngineError(load["fail"], "the scripted model is not there", "pull it")
        if "crash" in load:
            raise RuntimeError("unforeseen while loading")
        if "kill" in load:
            os.kill(os.getpid(), int(load["kill"]))
        progress("done", 1.0)
        return ScriptedCore(config.model, trace, load.get("version", engine.__version__))

    return factory


def main(arguments: list[str], env: Mapping[str, str]) -> int:
    """A daemon with a scripted core; options are `--field value` pairs of `EngineConfig`."""
    logging.basicConfig(level="INFO", stream=sys.stderr)
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    config = read_config({name.removeprefix("--").replace("-", "_"): value for name, value in pairs}, env)
    return serve(config, scripted_factory(config, env), env)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
