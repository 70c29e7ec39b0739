"""Texts that come one after another: an answer is made of those that are there in time, the others come behind it.

Owns the waiting. What the texts are made into, and what becomes of those that came late, is for the caller to say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from lsp_server.document import Document
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Job

logger = logging.getLogger(__name__)

Ghosts = tuple[GhostText, ...]


class Gathering:
    """The texts for one place of one version of a document, asked for by `job`.

    `place` tells apart what can be asked there: the offset, the settings, a menu entry.
    """

    def __init__(self, document: Document, place: Hashable, job: Job) -> None:
        self._document = document
        self._place = place
        self._job = job
        self._ghosts: Ghosts = ()
        self._came = asyncio.Event()
        self._work: asyncio.Future[Ghosts] | None = None

    def begin(self, work: Coroutine[Any, Any, Ghosts]) -> None:
        """Start what asks for the texts. It may tell some before it returns all."""
        self._work = asyncio.ensure_future(work)

    def tell(self, ghosts: Ghosts) -> None:
        """These are there, others may follow."""
        self._ghosts = ghosts
        if ghosts:
            self._came.set()

    def serves(self, document: Document, place: Hashable) -> bool:
        """Whether this is at work for that place, with nobody who waits for it."""
        return self._job.is_behind and not self.is_over and self._document is document and self._place == place

    @property
    def is_superseded(self) -> bool:
        """Whether something newer took this one's place."""
        return self._job.is_superseded

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._job.is_superseded or self._work is None or self._work.done()

    async def within(self, seconds: float) -> Ghosts:
        """What is there so long after the first text. The work goes on behind; cancelling the wait ends it."""
        assert self._work is not None
        self._job.is_behind = False
        first = asyncio.ensure_future(self._came.wait())
        try:
            either: set[asyncio.Future[Any]] = {first, self._work}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._work.done():
                await asyncio.wait({self._work}, timeout=seconds)
        except asyncio.CancelledError:
            self._work.cancel()
            raise
        finally:
            first.cancel()
        if self._work.done():
            return self._work.result()
        self._job.is_behind = True
        return self._ghosts

    def afterwards(self, use: Callable[[Ghosts], None]) -> None:
        """Call `use` with all the texts once they are there, unless the work is ended before."""
        assert self._work is not None

        def ended(work: asyncio.Future[Ghosts]) -> None:
            if work.cancelled():
                return
            if (fault := work.exception()) is not None:
                logger.error("further texts failed: %s", type(fault).__name__)
            elif ghosts := work.result():
                use(ghosts)

        self._work.add_done_callback(ended)
