"""Waiting with a patience that is counted in looks: who was stopped meanwhile, or slept, has not waited."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TypeVar

Result = TypeVar("Result")
LOOK_S = 1.0


async def awaited(work: asyncio.Future[Result], patience_s: float) -> Result:
    """The result of `work`, which is not cancelled when patience ends. Raises TimeoutError."""
    for _ in range(max(1, math.ceil(patience_s / LOOK_S))):
        with contextlib.suppress(TimeoutError):
            # Not `asyncio.wait`: it gives the other side of a link in this process too few turns.
            return await asyncio.wait_for(asyncio.shield(work), min(LOOK_S, patience_s))
        if work.done():
            return work.result()
    raise TimeoutError
