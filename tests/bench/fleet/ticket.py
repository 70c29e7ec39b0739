"""One request on its way: when it was born, what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["fill", "rewrite"]


@dataclass(eq=False, slots=True)
class Ticket:
    """A request. Times are seconds of the agenda; None for what has not happened.

    place: where in which file, by which a replica knows whether the context is resident. born: the key that led to it.
    seen, answered, cancelled: first draft and text at the person's, and the moment it was given up there.
    withdrawn, finished: what its replica knows, a network's way earlier or later.
    """

    user: int
    place: int
    kind: Kind
    born: float
    steps: int = 1
    told_draft: Callable[[], None] = lambda: None
    told_done: Callable[[], None] = lambda: None
    sent: float | None = None
    seen: float | None = None
    answered: float | None = None
    cancelled: float | None = None
    withdrawn: bool = False
    finished: bool = False
