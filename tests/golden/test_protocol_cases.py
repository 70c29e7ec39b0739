"""What the server must do at the wire, as data in `protocol/`: what an editor does, what the engine says, what comes.

`tests/fakes/protocol_steps.py` is the vocabulary. Marks as in `test_golden.py`: `‸` the cursor, `⟦…⟧` a selection, `⇥`
a tab. Every session also ends with the checks of `LspClient`: one response per id, and no message that nobody claimed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.protocol_case import Case, load
from tests.fakes.protocol_parsing import round_of
from tests.fakes.protocol_player import play
from tests.fakes.protocol_stage import stage
from tests.fakes.protocol_steps import Repeat

PROTOCOL = Path(__file__).parent / "protocol"
CASES = [case for path in sorted(PROTOCOL.glob("*.toml")) for case in load(path)]


@pytest.mark.asyncio
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
async def test_the_server_does_at_the_wire_what_the_case_says(case: Case, tmp_path: Path) -> None:
    async with stage(case.setup, tmp_path) as made:
        await play(case, made)


def test_every_case_is_there_and_looks_at_something() -> None:
    wanted = (PROTOCOL / "case_ids.txt").read_text("utf-8").split()
    assert sorted({case.id for case in CASES}) == sorted(wanted)
    labels = [case.label for case in CASES]
    assert len(labels) == len(set(labels))
    assert [case.label for case in CASES if not any(_looks(turn.step) for turn in case.turns)] == []


def _looks(step: object) -> bool:
    """Whether a step can fail by what the server does."""
    if isinstance(step, Repeat):
        return any(_looks(turn.step) for turn in round_of(step, 0))
    wanted = getattr(step, "wanted", None)
    return wanted is not None and wanted != type(wanted)()
