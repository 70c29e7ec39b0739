"""Several holes of one request filled one after the other, each as a gap of its own: `hole_by_hole`.

For models that fill one gap at a time, and for holes that lie too far apart for one canvas. First the hole that leaves
least doubt, as a short look at each of them tells: what is sure then stands beside the others when they are made. Or
from the top (`HoleOrder`), which costs no looks. Holes still to come are shown as holes. Owns no model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.diffusion.denoise import draft_counts
from engine.hole_shown import shown_hole
from engine.job import Run
from engine.job_record import draft_message
from engine.protocol.messages import Done, Draft, Fill, Filled, FurtherHole, Stats


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a short look at a hole told.

    doubt: how unsure its text is, in nats a token, inf where nothing was seen. text: how it begins as far as that was
    computed, a draft for whoever fills the hole. passes: forward passes the look took. read: rows of the
    prompt that were not resident. Both 0 where all was known already.
    """

    doubt: float = math.inf
    text: str = ""
    passes: int = 0
    read: int = 0


One = Callable[[Fill, bool], Run]
Look = Callable[[Fill], Generator[None, None, Glimpse]]


def hole_by_hole(request: Fill, one: One, look: Look | None = None) -> Run:
    """Fill the holes of `request`, each by the run `one` begins for it. Closing it closes the run under way.

    one: takes a hole as a request of its own, and whether it is the last: only then is the text whole.
    look: judges a hole given so; it is asked anew about every open hole before each choice, and should remember those
    whose surroundings have not changed. None to go from the top.
    """
    made: dict[int, Done] = {}
    glimpses: dict[int, Glimpse] = {}
    left = list(range(1 + len(request.further)))
    looks: list[Glimpse] = []
    while left:
        if look is not None and len(left) > 1:
            for number in left:
                seen = glimpses.get(number, Glimpse())
                seen = yield from look(_with_draft(gap_of(request, made, number), seen))
                glimpses[number] = _unless_echo(seen, request.language)
                looks.append(glimpses[number])
        # Of equal doubts the topmost: what stands in front of a hole says more of it than what follows.
        chosen = min(left, key=lambda number: glimpses.get(number, Glimpse()).doubt)
        left.remove(chosen)
        gap = _with_draft(gap_of(request, made, chosen), glimpses.get(chosen, Glimpse()))
        made[chosen] = yield from _told(one(gap, not left), chosen, wants_drafts=request.wants_drafts)
    return together(made, looks)


def _unless_echo(seen: Glimpse, language: str) -> Glimpse:
    """`seen`, unless the model only repeats how the other holes are shown: it is sure of that, and it says nothing."""
    is_echo = seen.text.strip().startswith(shown_hole(language))
    return replace(seen, doubt=math.inf, text="") if is_echo else seen


def _told(run: Run, hole: int, *, wants_drafts: bool) -> Run:
    """The run, its drafts telling which hole they are of. A hole that was made too fast for one is told at its end."""
    is_told = not wants_drafts
    try:
        while True:
            news = next(run)
            is_told |= isinstance(news, Draft)
            yield replace(news, hole=hole) if isinstance(news, Draft) else None
    except StopIteration as finished:
        done: Done = finished.value
    finally:
        run.close()
    if not is_told and done.text:
        yield draft_message(done.id, done.text, len(done.text), done.stats.passes, done.stats.passes, hole)
    return done


def _with_draft(gap: Fill, seen: Glimpse) -> Fill:
    return gap if gap.draft or not seen.text else replace(gap, draft=seen.text)


def gap_of(request: Fill, made: Mapping[int, Done], number: int) -> Fill:
    """A hole that is not made yet, as a request of its own. What was cut off counts as not made."""
    shown = shown_hole(request.language)
    holes = (FurtherHole("", request.draft, request.max_lines), *request.further)
    hole = holes[number]

    def text(place: int) -> str:
        done = made.get(place)
        whole = done is not None and done.stats.stop in {"end", "lines"}
        return done.text if done is not None and whole else holes[place].draft or shown

    before = "".join(f"{holes[place].island}{text(place)}" for place in range(number))
    behind = "".join(f"{holes[place].island}{text(place)}" for place in range(number + 1, len(holes)))
    return replace(
        request,
        prefix=request.prefix + before + hole.island,
        suffix=behind + request.suffix,
        draft=hole.draft,
        max_lines=hole.max_lines,
        alternatives=1,
        further=(),
    )


def together(made: Mapping[int, Done], looks: Sequence[Glimpse] = ()) -> Done:
    """One answer of those for each hole, given by number in the order they were made; what looks cost is added."""
    first, *others = (made[number] for number in sorted(made))
    further = tuple(Filled(done.text, done.stats.stop) for done in others)
    stats = _sum([done.stats for done in made.values()])
    stats = replace(
        stats,
        stop=first.stats.stop,
        passes=stats.passes + sum(look.passes for look in looks),
        prompt_tokens=stats.prompt_tokens + sum(look.read for look in looks),
    )
    return replace(first, stats=stats, further=further)


def _sum(stats: Sequence[Stats]) -> Stats:
    first = stats[0]
    return replace(
        first,
        passes=sum(each.passes for each in stats),
        tokens=sum(each.tokens for each in stats),
        prompt_tokens=sum(each.prompt_tokens for each in stats),
        cached_tokens=sum(each.cached_tokens for each in stats),
        ms_total=stats[-1].ms_total,
        drafts=draft_counts(each.drafts for each in stats),
        confidence=_mean_confidence(stats),
        gates=tuple(dict.fromkeys(gate for each in stats for gate in each.gates)),
        fallback=any(each.fallback for each in stats),
    )


def _mean_confidence(stats: Sequence[Stats]) -> float | None:
    """Of the tokens of all holes whose confidence is known."""
    known = [(each.confidence, each.tokens) for each in stats if each.confidence is not None]
    tokens = sum(count for _, count in known)
    return sum(confidence * count for confidence, count in known) / tokens if tokens else None
