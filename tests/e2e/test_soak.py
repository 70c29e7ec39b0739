"""2,000 random operations against a real server process: every id answered once, texts equal, no error, flat memory.

The seed is fixed, so that a failure can be repeated; `LACUNA_SOAK_SEED=7` (or a word that is no number, for a fresh
one) chooses another. `python -m tests.bench.soak` does the same with the real engine.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from tests.fakes import lsp_messages as lsp
from tests.fakes import soak_replies as replies
from tests.fakes.editor_model import EditorModel
from tests.fakes.soak import MOST_OWN, Checkpoint, growth, soak
from tests.fakes.soak_documents import About, OpenText
from tests.fakes.soak_texts import Place

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


def about(place: Place = (0, 3), chosen: Any = None) -> About:
    """A question about `a🙂` and `bc`, at version 1."""
    return About(OpenText("file:///a.py", "python", 1, EditorModel("a🙂\nbc", "utf-16")), 1, place, chosen)


def item(start: Place, end: Place, text: str = "x") -> dict[str, Any]:
    return {"items": [{"range": lsp.area(start, end), "insertText": text}]}


@pytest.mark.parametrize(
    ("answer", "asked", "said"),
    [
        (None, about(), ""),
        (item((0, 3), (0, 3)), about(), ""),
        (item((0, 3), (0, 4)), about(), "is not in version 1"),
        (item((0, 3), (1, 0)), about(), "several lines"),
        (item((0, 3), (0, 1)), about(), "is not in version 1"),
        (item((1, 0), (1, 2)), about(), "for a cursor at (0, 3)"),
        (item((0, 3), (0, 3), ""), about(), "without text"),
        (item((0, 0), (0, 3), "valued"), about(chosen={"text": "value"}), ""),
        (item((0, 0), (0, 3), "other"), about(chosen={"text": "value"}), "does not extend"),
    ],
)
def test_a_wrong_suggestion_is_seen(answer: Any, asked: About, said: str) -> None:
    faults = list(replies.inline_faults(answer, asked))
    assert any(said in fault for fault in faults) if said else not faults


@pytest.mark.parametrize(
    ("spans", "version", "said"),
    [
        ([lsp.area((0, 0), (0, 1)), lsp.area((0, 1), (1, 2))], 1, ""),
        ([lsp.area((0, 0), (1, 1)), lsp.area((0, 3), (1, 2))], 1, "overlap"),
        ([lsp.area((0, 0), (2, 0))], 1, "is not in version 1"),
        ([lsp.area((0, 0), (0, 1))], 2, "is not in version 2"),
    ],
)
def test_a_wrong_edit_is_seen(spans: list[Any], version: int, said: str) -> None:
    head = {"uri": "file:///a.py", "version": version}
    edit = {"documentChanges": [{"textDocument": head, "edits": [{"range": span, "newText": ""} for span in spans]}]}
    faults = list(replies.edit_faults(edit, about()))
    assert any(said in fault for fault in faults) if said else not faults


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
