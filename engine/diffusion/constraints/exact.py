"""Known ids at known places: `ExactText`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.canvas import LOCKED, Canvas
from engine.protocol.errors import EngineError


@dataclass(frozen=True, slots=True)
class ExactText:
    """ids: by place from the left, or from the right when negative, so that a canvas may grow in between.

    For holes of known length: a place that a candidate length does not have is an error. Given text is better locked in
    the canvas; this is for ids that are known and yet part of the answer. The logits become one-hot, which gives those
    places zero entropy.
    """

    ids: Mapping[int, int]

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """See `Constraint`. Raises EngineError(bad_request) for a place or an id that is not there."""
        constrained = logits.clone()
        for place, token in self._wanted(canvas).items():
            if not 0 <= token < logits.shape[1]:
                raise EngineError("bad_request", f"the id {token} is not in the vocabulary", "take the model's own ids")
            # An id another constraint has forbidden stays so: the two then leave nothing, and that is said.
            wanted = torch.nan_to_num(logits[place, token], nan=0.0, posinf=0.0, neginf=-torch.inf)
            constrained[place] = -torch.inf
            constrained[place, token] = wanted
        return constrained

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:  # noqa: ARG002  # the seam's
        """See `Constraint`."""
        wrong = torch.zeros_like(canvas.locked)
        for place, token in self._wanted(canvas).items():
            wrong[place] = canvas.ids[place] != token
        return wrong if bool(wrong.any()) else None

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:  # noqa: ARG002  # the seam's
        """See `Constraint`. Raises EngineError(bad_request): places are counted on one canvas."""
        raise EngineError(
            "bad_request", "exact ids were asked for in a text of several canvases", "give the places of one canvas"
        )

    def _wanted(self, canvas: Canvas) -> dict[int, int]:
        """The id of each place that is not locked anyway. Raises EngineError(bad_request) for contradictions."""
        wanted: dict[int, int] = {}
        for given, token in self.ids.items():
            place = given + canvas.length if given < 0 else given
            if not 0 <= place < canvas.length:
                message = f"there is no place {given} on a canvas of {canvas.length}"
                raise EngineError("bad_request", message, "name places of the canvas")
            present = int(canvas.ids[place]) if int(canvas.state[place]) == LOCKED else token
            if present != token or wanted.get(place, token) != token:
                raise EngineError("bad_request", f"place {place} is to hold two ids", "name one id for each place")
            if int(canvas.state[place]) != LOCKED:
                wanted[place] = token
        return wanted
