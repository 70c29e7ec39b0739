"""The canvas of a gap: which tokens are settled and which are still a draft.

A causal canvas settles from the left, so its state is two runs: `settled` (accepted, checked) and `draft` (offered,
not yet checked). Owns nothing but the ids; text is made by the caller's tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Canvas:
    """Token ids of one gap, left to right. `settled` never changes again; `draft` may."""

    settled: tuple[int, ...] = ()
    draft: tuple[int, ...] = ()

    def accept(self, ids: tuple[int, ...]) -> Canvas:
        """Settle `ids` behind the present settled run and drop the draft, which no longer lines up."""
        return Canvas(self.settled + ids)

    def with_draft(self, ids: tuple[int, ...]) -> Canvas:
        """The same settled run with another draft behind it."""
        return Canvas(self.settled, ids)
