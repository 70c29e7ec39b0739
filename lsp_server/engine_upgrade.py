"""After an upgrade: an engine that an older version left running makes way for one of ours.

Only ever the older one, so that two installations of one user do not end each other's engines in turn. What it runs for
other editors is let finish. Engines of another protocol version have an address of their own and are not met here.
"""

from __future__ import annotations

import asyncio
import contextlib

from packaging.version import InvalidVersion, Version

from engine.protocol.errors import EngineError
from engine.protocol.messages import Facts
from lsp_server import __version__
from lsp_server.engine_connection import EngineConnection

# How long an older engine may go on with what it runs.
FINISH_S = 10.0
# And how long it may take to leave.
LEAVE_S = 10.0
_POLL_S = 0.2
# A command or a path may lead to the older version again and again; then that is the one to work with.
MOST_RETIRED = 2


class Upgrade:
    """Whether the engine found is to be replaced, and its leaving. `version` is what it has to be at the least."""

    def __init__(self, version: str = __version__) -> None:
        self._version = version
        self._retired = 0

    def is_due(self, facts: Facts) -> bool:
        """Whether the engine is older than this client, and replacing it was not tried in vain already."""
        found = parts(facts.engine_version)
        return self._retired < MOST_RETIRED and bool(found) and found < parts(self._version)

    async def retire(self, connection: EngineConnection) -> None:
        """Let it finish what it runs, then have it leave; one that is gone meanwhile has left, too."""
        self._retired += 1
        with contextlib.suppress(TimeoutError, EngineError):
            async with asyncio.timeout(FINISH_S):
                while (await connection.status()).jobs_running:
                    await asyncio.sleep(_POLL_S)
        with contextlib.suppress(TimeoutError, EngineError):
            async with asyncio.timeout(LEAVE_S):
                await connection.shutdown()


def parts(version: str) -> tuple[int, ...]:
    """The numbers of a version, to be compared: "0.2.0rc1" gives (0, 2), what is no version gives none (PEP 440)."""
    try:
        release = list(Version(version).release)
    except InvalidVersion:
        return ()
    while len(release) > 1 and not release[-1]:
        release.pop()
    return tuple(release)
