"""Which of several holes comes first: the one that leaves least doubt, by looks whose work is used again."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import groupby

import pytest
import torch

from engine.canvas import Canvas
from engine.canvas_serving.core import CanvasCore
from engine.core import EngineCore
from engine.hole_by_hole import Glimpse, hole_by_hole
from engine.hole_order import HoleOrder
from engine.job import Run
from engine.job_record import Timing
from engine.models.canvas_model import Known
from engine.models.tiny import tiny_denoiser
from engine.monitor import Course
from engine.protocol.messages import Done, Draft, Fill, Filled, FurtherHole, Rewrite, Stats
from engine.quality import Gates
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.scripted_canvas import ScriptedCanvasModel, peaked, uniform_facts
from tests.fakes.word_model import WordModel

REQUEST = Fill(
    "1",
    "python",
    "a = ",
    "\nend\n",
    max_tokens=8,
    wants_drafts=True,
    further=(FurtherHole("\nb = "), FurtherHole("\nc = ", draft="old")),
)
STATS = Stats("causal", "scripted", "end", 2, 3, 10, 4, 1.0, 2.0, 5.0)


class Script:
    """Holes that answer with their own letter; `doubts` by letter, one for each time somebody looks."""

    def __init__(self, **doubts: tuple[float, ...]) -> None:
        self.doubts: dict[str, Iterator[float]] = {letter: iter(each) for letter, each in doubts.items()}
        self.filled: list[Fill] = []
        self.looked: list[Fill] = []
        self.last: list[bool] = []
        self.closed = 0

    def one(self, gap: Fill, is_last: bool) -> Run:
        self.filled.append(gap)
        self.last.append(is_last)
        yield Draft("1", "", 0, 1, 1)
        letter = gap.prefix[-4]
        return Done("1", letter.upper(), replace(STATS, ms_total=float(len(self.filled))))

    def look(self, gap: Fill) -> Generator[None, None, Glimpse]:
        self.looked.append(gap)
        letter = gap.prefix[-4]
        try:
            yield None
        finally:
            self.closed += 1
        return Glimpse(next(self.doubts[letter]), f"{letter}?", 1, 7)


def finish(run: Run) -> tuple[Done, list[int]]:
    """The result, and the hole each draft was of."""
    holes: list[int] = []
    while True:
        try:
            news = next(run)
        except StopIteration as finished:
            return finished.value, holes
        if isinstance(news, Draft):
            holes.append(news.hole)


def test_the_least_doubtful_hole_is_filled_first_and_judged_against_the_others_anew() -> None:
    script = Script(a=(3.0, 0.1), b=(2.0, 0.2), c=(1.0,))
    done, drafts = finish(hole_by_hole(REQUEST, script.one, script.look))
    assert drafts == [2, 0, 1]
    assert [hole.text for hole in done.holes] == ["A", "B", "C"]
    assert [gap.prefix for gap in script.filled] == ["a = ...\nb = ...\nc = ", "a = ", "a = A\nb = "]
    assert [gap.suffix for gap in script.filled] == ["\nend\n", "\nb = ...\nc = C\nend\n", "\nc = C\nend\n"]
    assert script.last == [False, False, True]
    assert [gap.prefix[-4] for gap in script.looked] == ["a", "b", "c", "a", "b"]
    assert (done.stats.passes, done.stats.ms_total) == (3 * STATS.passes + 5, 3.0)
    assert done.stats.prompt_tokens == 3 * STATS.prompt_tokens + 5 * 7


def test_what_a_look_saw_is_the_draft_of_the_next_look_and_of_the_hole() -> None:
    script = Script(a=(3.0, 3.0), b=(2.0, 2.0), c=(1.0,))
    finish(hole_by_hole(REQUEST, script.one, script.look))
    assert [gap.draft for gap in script.looked] == ["", "", "old", "a?", "b?"]
    assert [gap.draft for gap in script.filled] == ["old", "b?", "a?"]


def test_equal_doubts_and_none_at_all_go_from_the_top() -> None:
    script = Script(a=(math.inf,) * 3, b=(math.inf,) * 3, c=(math.inf,) * 3)
    assert finish(hole_by_hole(REQUEST, script.one, script.look))[1] == [0, 1, 2]
    assert finish(hole_by_hole(REQUEST, Script().one))[1] == [0, 1, 2]


def test_a_hole_of_which_only_the_sign_of_a_hole_is_seen_is_no_sure_one() -> None:
    def look(gap: Fill) -> Generator[None, None, Glimpse]:
        yield None
        return Glimpse(0.0, " ...", 1) if gap.prefix[-4] == "a" else Glimpse(2.0, "x", 1)

    assert finish(hole_by_hole(REQUEST, Script().one, look))[1] == [1, 2, 0]


def test_closing_while_somebody_looks_closes_the_look_and_fills_nothing() -> None:
    script = Script(a=(1.0,), b=(1.0,), c=(1.0,))
    run = hole_by_hole(REQUEST, script.one, script.look)
    next(run)
    run.close()
    assert (script.closed, script.filled) == (1, [])


# After `a` three words are nearly as likely, after `b` two, after `c` one: so much is in doubt.
WORDS = [b"...", b"a", b"b", b"c", b" =", b"\n", b"x", b"y", b"z", b"e"]
LIKES = {b"a": [b"x", b"y", b"z"], b"b": [b"y", b"x"], b"c": [b"z"], b"z": [b"e"], b"y": [b"e"], b"x": [b"e"]}
LETTERS = replace(REQUEST, prefix="a", suffix="\n", further=(FurtherHole("\nc"), FurtherHole("\nb")))


@pytest.mark.parametrize(("order", "holes"), [("least_doubt", [1, 2, 0]), ("top_down", [0, 1, 2])])
def test_a_causal_model_fills_what_it_is_sure_of_first(order: HoleOrder, holes: list[int]) -> None:
    core = EngineCore(WordModel(WORDS, LIKES), hole_order=order, threads=1, gates=Gates.open())
    done, drafts, _ = drive(core, LETTERS)
    assert [hole for hole, _ in groupby(draft.hole for draft in drafts)] == holes
    # What is known at once is told once.
    assert {draft.text for draft in drafts if draft.hole == 1} >= {"ze"}
    assert done.holes == (Filled("xe", "end"), Filled("ze", "end"), Filled("ye", "end"))


class Noting(EngineCore):
    """Notes which gaps are filled, and what each look told."""

    filled: list[Fill]
    glimpses: list[Glimpse]

    def _one(self, course: Course, timing: Timing, request: Fill | Rewrite, is_last: bool = True) -> Run:
        assert isinstance(request, Fill)
        self.filled.append(request)
        return (yield from super()._one(course, timing, request, is_last))

    def _look(self, timing: Timing, known: dict, request: Fill) -> Generator[None, None, Glimpse]:  # type: ignore[type-arg]
        glimpse = yield from super()._look(timing, known, request)
        self.glimpses.append(glimpse)
        return glimpse


def noting(seed: int) -> Noting:
    core = Noting(tiny_denoiser(seed=seed), clock=Clock(0.001), threads=1)
    core.filled, core.glimpses = [], []
    return core


@pytest.mark.parametrize("seed", range(4))
def test_every_text_is_that_of_its_hole_alone_as_it_was_shown(seed: int) -> None:
    core = noting(seed)
    done, drafts, _ = drive(core, REQUEST)
    made = {}
    for gap in core.filled:
        alone, _, _ = drive(EngineCore(tiny_denoiser(seed=seed), threads=1, gates=Gates.open()), replace(gap, draft=""))
        made[("a", "b", "c").index(gap.prefix[-4])] = Filled(alone.text, alone.stats.stop)
    assert done.holes == tuple(made[number] for number in range(3))
    assert {draft.hole for draft in drafts} <= {0, 1, 2}


def test_a_hole_whose_surroundings_did_not_change_is_looked_at_once() -> None:
    # What is filled last in the file is seen from no other hole: it is further away than a prompt reaches.
    far = "\n" * 170
    core = Noting(WordModel(WORDS, LIKES), threads=1)
    core.filled, core.glimpses = [], []
    drive(core, replace(LETTERS, further=(FurtherHole(far + "b"), FurtherHole(far + "c"))))
    first, second = core.glimpses[:3], core.glimpses[3:]
    assert all(glimpse.passes for glimpse in first)
    assert all(glimpse.read > 100 for glimpse in first)
    assert second == [replace(glimpse, passes=0, read=0) for glimpse in first[:2]]


def test_a_deadline_that_falls_during_the_looks_ends_the_job() -> None:
    core = noting(4)
    done, _, _ = drive(core, replace(REQUEST, deadline_ms=6))
    assert [hole.stop for hole in done.holes] == ["deadline"] * 3
    assert core.glimpses
    assert core.glimpses[-1].doubt == math.inf


def test_holes_too_far_apart_for_a_canvas_begin_with_the_least_doubtful() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        letter = ord("b") if b"def g" in bytes(known.prefix) else ord("a")
        logits = peaked([letter] * canvas.length)
        return logits if letter == ord("b") else logits * 0.3

    model = ScriptedCanvasModel(script, uniform_facts(canvas_length=128, right_context=False))
    request = replace(REQUEST, further=(FurtherHole("\n# a long way" * 12 + "\n\ndef g(x):\n    return "),))
    done, drafts, _ = drive(CanvasCore(model, threads=1, clock=Clock(0.001)), request)
    assert [hole for hole, _ in groupby(draft.hole for draft in drafts)] == [1, 0]
    first, second = done.holes
    assert (set(first.text), set(second.text)) == ({"a"}, {"b"})
