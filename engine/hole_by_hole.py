"""Several holes of one request filled one after the other, each as a gap of its own: `hole_by_hole`.

For models that fill one gap at a time, and for holes that lie too far apart for one canvas. From the top: what is made
stands in front of the next hole, and what the engine has read in front of one hole is resident for the next. (To begin
with the hole that leaves least doubt, as families do that judge all of them in one pass, would have every hole's
surroundings read before the first token.) Holes still to come are shown as holes. Owns no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.diffusion.denoise import draft_counts
from engine.hole_shown import shown_hole
from engine.job import Run
from engine.protocol.messages import Done, Draft, Fill, Filled, FurtherHole, Stats


def hole_by_hole(request: Fill, one: Callable[[Fill, bool], Run]) -> Run:
    """Fill the holes of `request`, each by the run `one` begins for it. Closing it closes the run under way.

    one: takes a hole as a request of its own, and whether it is the last: only then is the text whole.
    """
    results: list[Done] = []
    while len(results) <= len(request.further):
        made = [hole for done in results for hole in done.holes]
        run = one(gap_of(request, made), len(made) == len(request.further))
        try:
            while True:
                news = next(run)
                yield replace(news, hole=len(results)) if isinstance(news, Draft) else None
        except StopIteration as finished:
            results.append(finished.value)
        finally:
            run.close()
    return together(results)


def gap_of(request: Fill, made: Sequence[Filled]) -> Fill:
    """The first hole that is not made yet, as a request of its own. What was cut off counts as not made."""
    shown = shown_hole(request.language)
    first = FurtherHole("", request.draft, request.max_lines)
    holes = (first, *request.further)
    number = len(made)
    hole, behind = holes[number], holes[number + 1 :]
    before = [
        (hole.island, done.text if done.stop in {"end", "lines"} else hole.draft or shown)
        for hole, done in zip(holes, made, strict=False)
    ]
    return replace(
        request,
        prefix=request.prefix + "".join(f"{island}{text}" for island, text in before) + hole.island,
        suffix="".join(f"{each.island}{each.draft or shown}" for each in behind) + request.suffix,
        draft=hole.draft,
        max_lines=hole.max_lines,
        alternatives=1,
        further=(),
    )


def together(results: Sequence[Done]) -> Done:
    """One answer of those for each hole."""
    first, *others = results
    further = tuple(Filled(done.text, done.stats.stop) for done in others)
    return replace(first, stats=_sum([done.stats for done in results]), further=further)


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
    )
