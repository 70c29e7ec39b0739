"""The draft of the next pass, place by place: each source names a token and its chance, the likeliest is offered.

The draft ends where the chance that all of it is kept no longer pays for another row. Owns the sources' memory of one
gap; whether a draft is right is decided by the verifying pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from engine.diffusion.confidence import Experience, MaskConfidence, both, ngram_chance
from engine.diffusion.cost_curve import worthwhile
from engine.diffusion.drafts import Leftover, NgramLookup
from engine.diffusion.verify_config import VerifyConfig
from engine.diffusion.warm_start import Expected, WarmStart

# The present text is part of what is searched for repeats.
_READ_THE_SAME = {"warm_start", "ngram"}
# A place the pass comes to this seldom is not worth the thought of what stands there.
_HARDLY_REACHED = 0.02


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token for one place, who named it, and its chance of being kept once all before it were."""

    token: int
    source: str
    chance: float


Draft = tuple[Candidate, ...]


@dataclass(slots=True)
class Competition:
    """The sources of one gap. `confidence` is None for a model that has no trained masks."""

    config: VerifyConfig
    confidence: MaskConfidence | None
    warm: WarmStart
    lookup: NgramLookup
    ends: frozenset[int] = frozenset()
    experience: dict[str, Experience] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        config: VerifyConfig,
        confidence: MaskConfidence | None,
        warm: Sequence[int],
        searched: Sequence[Sequence[int]],
        ends: frozenset[int],
    ) -> Competition:
        """warm: the text now in the gap; searched: runs of the surrounding text, the nearest last; ends: ids behind
        which there is nothing to draft."""
        lookup = NgramLookup(config.ngram_min)
        for run in searched if config.ngram else ():
            lookup.extend(run)
        return cls(config, confidence, WarmStart(tuple(warm)), lookup, ends)

    def draft(self, settled: Sequence[int], leftover: Leftover, room: int) -> Draft:
        """The next draft behind `settled`, at most `room` tokens; its tokens are each worth their row."""
        most = min(room, self.config.width)
        warm = self.warm.offer(settled, max(0, most)) if self.config.warm_start else ()
        drafted: list[Candidate] = []
        ids: list[int] = []
        reached = [1.0]
        while len(drafted) < most and reached[-1] > _HARDLY_REACHED:
            best = _best(self._candidates(ids, warm, leftover))
            if best is None:
                break
            reached.append(reached[-1] * best.chance)
            drafted.append(best)
            ids.append(best.token)
            if best.token in self.ends:
                break
        return tuple(drafted[: worthwhile(reached[1:], self.config.costs)])

    def record(self, draft: Draft, accepted: int) -> None:
        """Learn from a pass that kept the first `accepted` tokens of `draft`."""
        for source in {candidate.source for candidate in draft}:
            offered, kept = self.counts.get(source, (0, 0))
            mine = [place for place, candidate in enumerate(draft) if candidate.source == source]
            good = sum(1 for place in mine if place < accepted)
            self.counts[source] = (offered + len(mine), kept + good)
            refused = accepted < len(draft) and draft[accepted].source == source
            self.experience.setdefault(source, Experience()).record(good, refused)

    def settle(self, ids: Sequence[int]) -> None:
        """Add accepted ids to the searched text."""
        if self.config.ngram:
            self.lookup.extend(ids)

    def _candidates(self, ids: Sequence[int], warm: Sequence[Expected], leftover: Leftover) -> Iterator[Candidate]:
        place = len(ids)
        # The present text lines up only as long as the draft has followed it.
        if place < len(warm) and _follows(ids, warm):
            yield Candidate(warm[place].token, "warm_start", warm[place].chance)
        found = self.lookup.following(ids) if self.config.ngram else None
        if found is not None:
            yield Candidate(found[0], "ngram", self._chance("ngram", ngram_chance(found[1])))
        if self.config.masks and self.confidence is not None and place < len(leftover.masks):
            chance = self.confidence.kept(place, leftover.probabilities[place])
            yield Candidate(leftover.masks[place], "masks", self._chance("masks", chance))

    def _chance(self, source: str, learned: float) -> float:
        known = self.experience.get(source)
        return known.chance(learned) if known is not None else learned


def _best(candidates: Iterator[Candidate]) -> Candidate | None:
    """The likeliest; sources that name the same token are witnesses for each other, unless they read the same text."""
    by_token: dict[int, Candidate] = {}
    for candidate in candidates:
        other = by_token.get(candidate.token)
        if other is None:
            by_token[candidate.token] = candidate
            continue
        surer = max(other, candidate, key=lambda named: named.chance)
        alike = {other.source, candidate.source} == _READ_THE_SAME
        by_token[candidate.token] = surer if alike else replace(surer, chance=both(other.chance, candidate.chance))
    return max(by_token.values(), key=lambda candidate: candidate.chance, default=None)


def _follows(ids: Sequence[int], warm: Sequence[Expected]) -> bool:
    return all(token == expected.token for token, expected in zip(ids, warm, strict=False))
