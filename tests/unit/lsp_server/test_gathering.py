"""Texts that come one after another: what is there in time, and what becomes of the rest."""

from __future__ import annotations

import asyncio

import pytest

from lsp_server.document import Document
from lsp_server.gathering import Gathering, Ghosts
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Inflight

pytestmark = pytest.mark.asyncio

ONE = (GhostText(0, 0, "one"),)
TWO = (*ONE, GhostText(0, 0, "two"))
DOCUMENT = Document.open("file:///a.py", 1, "python", "")


async def test_all_that_is_there_at_once_is_the_answer() -> None:
    async def work() -> Ghosts:
        return TWO

    gathering = Gathering(DOCUMENT, 0, Inflight().claim(DOCUMENT.uri, "inline"))
    gathering.begin(work())
    assert await gathering.within(60) == TWO
    assert gathering.is_over
    assert not gathering.serves(DOCUMENT, 0)


async def test_what_comes_late_is_used_when_it_comes_unless_room_was_made() -> None:
    for is_ended in (False, True):
        inflight, gate = Inflight(), asyncio.Event()
        late: list[Ghosts] = []
        job = inflight.claim(DOCUMENT.uri, "inline")
        gathering = Gathering(DOCUMENT, 0, job)

        async def work(gathering: Gathering = gathering, gate: asyncio.Event = gate) -> Ghosts:
            gathering.tell(ONE)
            await gate.wait()
            return TWO

        gathering.begin(job.run(work()))
        assert await gathering.within(0) == ONE
        assert gathering.serves(DOCUMENT, 0)
        assert not gathering.serves(DOCUMENT, 1)
        gathering.afterwards(late.append)
        if is_ended:
            inflight.make_room()
            assert gathering.is_superseded
        else:
            gate.set()
        await asyncio.sleep(0.05)
        assert late == ([] if is_ended else [TWO])
        assert gathering.is_over


async def test_room_is_made_of_what_nobody_waits_for_alone() -> None:
    inflight = Inflight()
    waited_for, behind = inflight.claim("a", "inline"), inflight.claim("b", "inline")
    behind.is_behind = True
    inflight.make_room()
    assert (waited_for.is_superseded, behind.is_superseded) == (False, True)
