"""Several holes one after the other: what each is shown, one answer of all, and closing reaches the one under way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from engine.core import EngineCore
from engine.hole_by_hole import gap_of, hole_by_hole
from engine.hole_shown import shown_hole
from engine.job import Run
from engine.models.tiny import tiny_denoiser
from engine.protocol.errors import EngineError
from engine.protocol.messages import (
    MOST_HOLES,
    Done,
    Draft,
    Fill,
    Filled,
    FurtherHole,
    Stats,
    Stop,
)
from engine.quality import Gates
from tests.fakes.clock import Clock
from tests.fakes.driving import drive

REQUEST = Fill(
    "1",
    "python",
    "a = ",
    "\nend\n",
    max_tokens=8,
    max_lines=1,
    wants_drafts=True,
    further=(FurtherHole("\nb = "), FurtherHole("\nc = ", draft="old", max_lines=2)),
)


def stats(stop: Stop = "end") -> Stats:
    return Stats("causal", "scripted", stop, 2, 3, 10, 4, 1.0, 2.0, 5.0, (("ngram", 4, 1),))


def scripted(*answers: tuple[str, Stop]) -> tuple[list[Fill], list[str], list[Run]]:
    """What was asked, which runs were closed, and the runs themselves, one for each answer."""
    asked: list[Fill] = []
    closed: list[str] = []

    def one(text: str, stop: Stop) -> Run:
        try:
            yield Draft("1", text[:1], 1, 1, 1)
            yield None
        finally:
            closed.append(text)
        return Done("1", text, stats(stop))

    return asked, closed, [one(*answer) for answer in answers]


def run_of(asked: list[Fill], runs: list[Run], request: Fill = REQUEST) -> Run:
    def begin(gap: Fill, is_last: bool) -> Run:
        asked.append(gap)
        assert is_last == (len(asked) == len(runs))
        return runs[len(asked) - 1]

    return hole_by_hole(request, begin)


def finish(run: Run) -> tuple[Done, list[Draft]]:
    drafts: list[Draft] = []
    while True:
        try:
            news = next(run)
        except StopIteration as finished:
            return finished.value, drafts
        if isinstance(news, Draft):
            drafts.append(news)


def test_each_hole_sees_those_made_as_text_and_those_to_come_as_holes() -> None:
    asked, _, runs = scripted(("1", "end"), ("2", "lines"), ("3", "end"))
    done, drafts = finish(run_of(asked, runs))
    assert [gap.prefix for gap in asked] == ["a = ", "a = 1\nb = ", "a = 1\nb = 2\nc = "]
    assert [gap.suffix for gap in asked] == ["\nb = ...\nc = old\nend\n", "\nc = old\nend\n", "\nend\n"]
    assert [(gap.draft, gap.max_lines) for gap in asked] == [("", 1), ("", 0), ("old", 2)]
    assert not any(gap.further for gap in asked)
    assert done.holes == (Filled("1", "end"), Filled("2", "lines"), Filled("3", "end"))
    assert [(draft.hole, draft.text) for draft in drafts] == [(0, "1"), (1, "2"), (2, "3")]


def test_what_was_cut_off_is_shown_as_the_hole_it_still_is() -> None:
    asked, _, runs = scripted(("cut", "budget"), ("late", "deadline"), ("3", "end"))
    done, _ = finish(run_of(asked, runs))
    assert asked[2].prefix == "a = ...\nb = ...\nc = "
    assert [hole.stop for hole in done.holes] == ["budget", "deadline", "end"]


def test_the_counts_are_sums_and_the_times_those_of_the_whole_job() -> None:
    asked, _, runs = scripted(("1", "end"), ("2", "end"), ("3", "end"))
    told = finish(run_of(asked, runs))[0].stats
    assert (told.passes, told.tokens, told.prompt_tokens, told.cached_tokens) == (6, 9, 30, 12)
    assert told.drafts == (("ngram", 12, 3),)
    assert (told.ms_encode, told.ms_first_draft, told.ms_total) == (1.0, 2.0, 5.0)


def test_closing_closes_the_run_under_way_and_begins_no_other() -> None:
    asked, closed, runs = scripted(("1", "end"), ("2", "end"), ("3", "end"))
    run = run_of(asked, runs)
    for _ in range(3):
        next(run)
    run.close()
    assert closed == ["1", "2"]
    assert len(asked) == 2


def test_an_open_hole_is_shown_as_what_its_language_allows() -> None:
    request = Fill("1", "json", '{"a": ', "}", further=(FurtherHole(', "b": '),))
    assert json.loads(f'{{"a": 1{gap_of(request, {}, 0).suffix}') == {"a": 1, "b": None}
    assert shown_hole("python") == "..."


def test_the_core_fills_all_holes_of_a_request_as_it_fills_each_alone() -> None:
    core = EngineCore(tiny_denoiser(seed=4), hole_order="top_down", clock=Clock(0.001), threads=1, gates=Gates.open())
    done, drafts, _ = drive(core, REQUEST)
    made: dict[int, Done] = {}
    for number in range(3):
        core_alone = EngineCore(tiny_denoiser(seed=4), clock=Clock(), threads=1, gates=Gates.open())
        made[number], _, _ = drive(core_alone, gap_of(REQUEST, made, number))
    assert done.holes == tuple(Filled(alone.text, alone.stats.stop) for alone in made.values())
    assert {draft.hole for draft in drafts} <= {0, 1, 2}
    assert done.stats.tokens >= 3
    # What stands in front of the first hole is read once.
    assert done.stats.cached_tokens >= 2 * len(REQUEST.prefix)
    assert done.stats.ms_total >= done.stats.ms_first_draft


def test_a_deadline_counts_from_the_start_of_the_job() -> None:
    core = EngineCore(tiny_denoiser(seed=4), clock=Clock(0.01), threads=1, gates=Gates.open())
    done, _, _ = drive(core, replace(REQUEST, deadline_ms=1))
    assert [hole.stop for hole in done.holes] == ["deadline"] * 3


def test_more_holes_than_anybody_marks_are_refused() -> None:
    core = EngineCore(tiny_denoiser(seed=4), threads=1, gates=Gates.open())
    with pytest.raises(EngineError, match="holes") as refused:
        next(core.start(replace(REQUEST, further=(FurtherHole("\n"),) * MOST_HOLES)))
    assert (refused.value.kind, bool(refused.value.remedy)) == ("bad_request", True)
