"""2,000 random operations against a real server process: every id answered once, texts equal, no error, flat memory.

The seed is fixed, so that a failure can be repeated; `LACUNA_SOAK_SEED=7` (or a word that is no number, for a fresh
one) chooses another. `python -m tests.bench.soak` does the same with the real engine.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.fakes.soak import MOST_OWN, Checkpoint, growth, soak

SEED = 20_261_130
OPERATIONS = 2000


def chosen_seed() -> int:
    """The seed of this run."""
    named = os.environ.get("LACUNA_SOAK_SEED", str(SEED))
    return int(named) if named.isdigit() else random.SystemRandom().randrange(10**6)


@pytest.mark.asyncio
async def test_two_thousand_random_operations_leave_nothing_wrong() -> None:
    seed = chosen_seed()
    faults = await soak(seed, OPERATIONS)
    assert not faults, f"LACUNA_SOAK_SEED={seed}: {len(faults)} faults:\n" + "\n".join(faults[:20])


@pytest.mark.asyncio
async def test_what_a_server_keeps_of_each_request_is_found() -> None:
    faults = await soak(SEED, 600, leaks=True)
    assert any("objects stay behind" in fault and "Snapshot" in fault for fault in faults), faults


FLAT = Checkpoint(1000, 200_000, 60_000, 60_000_000, {"lsp_server.document.Document": 1})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (Checkpoint(2000, 200_500, 60_100, 61_000_000, {"lsp_server.document.Document": 1}), ""),
        (Checkpoint(2000, 210_000, 60_100, 61_000_000, {}), "10.00 blocks"),
        (Checkpoint(2000, 200_500, 61_000, 61_000_000, {}), "1.00 objects"),
        (Checkpoint(2000, 200_500, 60_100, 99_000_000, {}), "39.0 MB"),
        (Checkpoint(2000, 200_500, 60_100, 61_000_000, {"lsp_server.inflight.Job": MOST_OWN + 1}), "Job"),
    ],
)
def test_growth_is_told_by_what_grew(after: Checkpoint, said: str) -> None:
    faults = growth(FLAT, after)
    assert [said in fault for fault in faults] == ([True] if said else [])
