"""Three minutes of two editors on one engine that is killed, suspended, garbled, cut off and out of disk space.

Servers, engine, sockets and signals are real; the engine's core is scripted (`varied_core`), because with a model's
each of some sixty engines would load for seconds, and because its right answers are known. `python -m tests.bench.soak
--minutes 60 --faults` does the same with the real engine and its cache. `LACUNA_SOAK_MINUTES` and `LACUNA_SOAK_SEED`
choose another length and seed.
"""

from __future__ import annotations

import os
import sys

import pytest

from engine.protocol.address import engine_address
from lsp_server.engine_client import EngineProcess, Patience
from lsp_server.engine_connection import Silence
from tests.fakes import varied_core
from tests.fakes.daemons import ended_engines
from tests.fakes.raw_client import short_home
from tests.fakes.soak import connected
from tests.fakes.soak_trouble import Target
from tests.fakes.troubled_soak import TroubledSoak, slope

SEED = 20_261_201
MINUTES = 3.0
MODEL = "varied"
COMMAND = [sys.executable, "-m", "tests.fakes.varied_core", "--model", MODEL]
# A suspended engine is to be noticed several times in the time there is.
SILENCE = (1.0, 3.0, 0.2)
PATIENCE_S = 60.0
EDITORS = 2


@pytest.mark.asyncio
@pytest.mark.timeout(600)
async def test_three_minutes_of_trouble_lose_nothing_and_leave_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = int(os.environ.get("LACUNA_SOAK_SEED", SEED))
    minutes = float(os.environ.get("LACUNA_SOAK_MINUTES", MINUTES))
    with short_home() as home, ended_engines(home, "tests.fakes.varied_core"):
        monkeypatch.setenv("LACUNA_HOME", str(home))
        script = {"model": MODEL, "command": COMMAND, "silence": SILENCE, "longest_retry_s": 2.0}
        runs = [await connected(seed + number, PATIENCE_S, **script) for number in range(EDITORS)]
        patience = Patience(longest_retry_s=2.0, silence=Silence(*SILENCE))
        engine = EngineProcess(MODEL, client="canary", command=COMMAND, patience=patience)
        target = Target(engine_address(MODEL, os.environ), None, runs)
        try:
            soak = TroubledSoak(target, engine, seed, (0.5, 4.0), varied_core.answer_to)
            outcome = await soak.run(minutes)
        finally:
            await engine.close()
            for run in runs:
                run.client.link.kill()
                await run.client.wait()
                sys.stderr.write(run.client.log.decode(errors="replace")[-4000:])
    sys.stdout.write(f"{outcome.as_json()}\n")
    assert not outcome.faults, f"LACUNA_SOAK_SEED={seed}: {len(outcome.faults)}:\n" + "\n".join(outcome.faults[:20])
    assert outcome.engine_questions > 10 * minutes
    assert outcome.questions > 100 * minutes
    assert outcome.engines > minutes, "the faults did not reach the engine"


def test_the_slope_of_memory_is_that_of_the_line_through_it() -> None:
    assert slope([(0.0, 100), (60.0, 400), (120.0, 700)]) == pytest.approx(300.0)
    assert slope([(0.0, 100)]) == slope([]) == 0.0
