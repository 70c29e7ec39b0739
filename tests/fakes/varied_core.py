"""An engine process that answers anything with anything, in steps: `python -m tests.fakes.varied_core --model NAME`.

What it says follows from the request's own text, so that whoever asks can tell a wrong answer from a right one
(`answer_to`); it fails with some requests, and is slow with others, as `varied_engine` is.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import engine
from engine.config import read_config
from engine.job import Run
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Facts, Fill, Rewrite
from engine.serving import serve
from tests.fakes.fake_engine import FACTS
from tests.fakes.varied_engine import FAILURES, done_for, shown

SEED = 8
STEPS = (1, 1, 2, 5, 20)


def answer_to(request: Fill | Rewrite) -> Done:
    """What every engine of this kind answers, unless it fails."""
    return done_for(_chance(request), request)


def _chance(request: Fill | Rewrite) -> random.Random:
    return random.Random(SEED ^ zlib.crc32(shown(request).encode("utf-8", "surrogatepass")))


class VariedCore:
    """Implements `engine.job.Core`."""

    def __init__(self, model: str) -> None:
        self._model = model

    @property
    def facts(self) -> Facts:
        return replace(FACTS, model=self._model, engine_version=engine.__version__, pid=os.getpid())

    def start(self, request: Fill | Rewrite) -> Run:
        return _run(request)


def _run(request: Fill | Rewrite) -> Run:
    own = random.Random(shown(request))
    done = answer_to(request)
    for step in range(own.choice(STEPS)):
        time.sleep(own.choice((0.0, 0.002, 0.02)))
        yield Draft(request.id, done.text[: step + 1], 0, step, 20)
    if own.random() < 0.03:
        raise EngineError(own.choice(FAILURES), "scripted failure", "nothing to do")
    return done


def main(arguments: list[str], env: Mapping[str, str]) -> int:
    """A daemon; options are `--field value` pairs of `EngineConfig`."""
    logging.basicConfig(level="INFO", stream=sys.stderr)
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    config = read_config({name.removeprefix("--").replace("-", "_"): value for name, value in pairs}, env)

    def load(progress: Callable[[str, float], None]) -> VariedCore:
        progress("weights", 0.5)
        time.sleep(0.1)
        return VariedCore(config.model)

    return serve(config, load, env)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
