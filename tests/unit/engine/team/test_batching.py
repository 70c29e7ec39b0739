"""`BatchingCore`: steps of several jobs in one pass, and each job's text what it is alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from engine.canvas_serving.core import CanvasCore
from engine.config import EngineConfig
from engine.job import Run
from engine.models.canvas_model import CanvasContext, JobStep, Prediction
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Draft, Fill, FurtherHole, Rewrite
from engine.startup import load_core
from engine.team.batch_limits import BatchLimits
from engine.team.batching import BatchingCore, batched
from tests.fakes.checkpoints import writers
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.scripted_canvas import ScriptedCanvasModel, ScriptedContext, random_script, saying
from tests.fakes.scripted_core import ScriptedCore

TEXT = "return a + b\n"


@dataclass
class JointScripted(ScriptedCanvasModel):
    """Notes how many jobs, and canvases, came together. `fails`: so many canvases are too many for a pass."""

    batches: list[int] = field(default_factory=list)
    canvases: list[int] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    fails: int = 1000

    def step_together(self, steps: Sequence[JobStep]) -> list[list[Prediction]]:
        canvases = sum(len(each.inputs) for each in steps)
        if canvases >= self.fails:
            raise MemoryError("scripted")
        self.batches.append(len(steps))
        self.jobs.append("".join(name_of(each.context) for each in steps))
        self.canvases.append(canvases)
        return [self.step(each.context, each.inputs, refresh=each.refresh) for each in steps]


def name_of(context: CanvasContext) -> str:
    """The name of the job that `fill` made, which stands in its text."""
    assert isinstance(context, ScriptedContext)
    return bytes(context.known.prefix).decode()[2]


def core_of(model: JointScripted, canvases: int = 32, window_s: float = 1e9) -> BatchingCore:
    core = batched(CanvasCore(model), BatchLimits(canvases, window_s))
    assert isinstance(core, BatchingCore)
    return core


def fill(name: str, draft: str = "0123456789", **changes: object) -> Fill:
    asked = Fill(name, "python", f"# {name}\n", "\n", draft=draft, max_tokens=16, wants_drafts=True)
    return replace(asked, **changes)  # type: ignore[arg-type]


def finish(runs: dict[str, Run]) -> dict[str, Done]:
    """Each run a turn after another until all are over, as the loop's scheduler does."""
    done: dict[str, Done] = {}
    while runs:
        for name, run in list(runs.items()):
            try:
                next(run)
            except StopIteration as end:
                done[name] = end.value
                del runs[name]
    return done


def texts_alone(script: Callable[[], JointScripted], requests: Sequence[Fill | Rewrite]) -> list[Done]:
    return [drive(CanvasCore(script()), request)[0] for request in requests]


def same_results(batch: Sequence[Done], alone: Sequence[Done]) -> None:
    for left, right in zip(batch, alone, strict=True):
        assert (left.id, left.holes, left.alternatives) == (right.id, right.holes, right.alternatives)
        assert (left.stats.passes, left.stats.tokens) == (right.stats.passes, right.stats.tokens)


def test_jobs_step_together_and_say_what_they_say_alone() -> None:
    def model() -> JointScripted:
        return JointScripted(random_script(3), chunks=2)

    requests: list[Fill | Rewrite] = [
        fill("a"),
        fill("b", draft=""),
        fill("c", alternatives=3),
        Rewrite("d", "python", "", "x = 1\n", "", "Add one.", max_tokens=32),
        fill("e", further=(FurtherHole("\n\n"), FurtherHole("\n"))),
    ]
    joint = model()
    core = core_of(joint)
    done = finish({request.id: core.start(request) for request in requests})
    same_results([done[request.id] for request in requests], texts_alone(model, requests))
    assert max(joint.batches) >= len(requests)
    assert core.counts.steps > 2 * core.counts.passes


def test_a_batch_holds_no_more_canvases_than_it_may() -> None:
    joint = JointScripted(random_script(5))
    core = core_of(joint, canvases=10)
    # Six lengths are tried for each at first, so that one fits; then fewer and fewer, so that more do.
    finish({name: core.start(fill(name)) for name in "abcdefg"})
    assert max(joint.canvases) == 10
    assert max(joint.batches) > 2


def test_those_that_were_not_stepped_for_longest_come_along_first() -> None:
    joint = JointScripted(random_script(7))
    # Two jobs a pass: six lengths are tried for each.
    core = core_of(joint, canvases=12)
    runs = {name: core.start(fill(name)) for name in "abc"}
    for _ in range(2):
        next(runs["a"])
    # The first turn of a took b along. Before b came again, c had its first step.
    assert joint.jobs == ["ab", "acb"]


def drafts_until(run: Run) -> int:
    """The step of the draft that a run has waiting."""
    news = next(run)
    assert isinstance(news, Draft)
    return news.step


def test_the_newest_draft_is_told_to_who_had_no_turn_for_long() -> None:
    core = core_of(JointScripted(random_script(11)))
    first, second = core.start(fill("a")), core.start(fill("b"))
    told = [news.step for _ in range(4) if isinstance(news := next(first), Draft)]
    assert told == [1, 2, 3, 4]
    assert drafts_until(second) >= 3
    first.close()
    second.close()


def test_an_abandoned_job_is_not_stepped_any_more() -> None:
    joint = JointScripted(random_script(13))
    core = core_of(joint)
    runs = {name: core.start(fill(name)) for name in "abc"}
    for run in runs.values():
        next(run)
    runs.pop("b").close()
    core.start(fill("d")).close()
    joint.batches.clear()
    done = finish(runs)
    assert set(done) == {"a", "c"}
    assert max(joint.batches) == 2
    assert joint.closed == len(joint.opened)


def test_a_joint_pass_that_fails_costs_no_job() -> None:
    def model() -> JointScripted:
        return JointScripted(random_script(17), fails=12)

    requests = [fill(name) for name in "abcdefgh"]
    joint = model()
    core = core_of(joint)
    done = finish({request.id: core.start(request) for request in requests})
    same_results([done[request.id] for request in requests], texts_alone(model, requests))
    # It learned what fits.
    assert joint.batches
    assert max(joint.canvases) < 12


def test_one_job_s_fault_is_told_in_its_own_turn_and_ends_it_only() -> None:
    joint = JointScripted(saying(TEXT))
    core = core_of(joint)
    bad = core.start(replace(fill("bad"), max_tokens=0))
    good = core.start(fill("good"))
    while not isinstance(next(good), Draft):
        pass
    with pytest.raises(EngineError, match="max_tokens"):
        next(bad)
    assert set(finish({"good": good})) == {"good"}


@dataclass
class SlowToRead(JointScripted):
    """Every text takes five chunks of 30 ms."""

    clock: Clock = field(default_factory=Clock)
    chunks_read: dict[int, int] = field(default_factory=dict)

    def read_on(self, context: CanvasContext) -> bool:
        self.clock.now += 0.03
        self.chunks_read[id(context)] = self.chunks_read.get(id(context), 0) + 1
        return self.chunks_read[id(context)] < 5


@pytest.mark.parametrize(("window_s", "batches"), [(0.0, []), (0.05, []), (0.2, [2])])
def test_jobs_that_read_their_text_are_waited_for_as_long_as_the_window_says(
    window_s: float, batches: list[int]
) -> None:
    joint = SlowToRead(random_script(19))
    core = BatchingCore(CanvasCore(joint), joint, BatchLimits(32, window_s), joint.clock)
    first = core.start(fill("a"))
    while not isinstance(next(first), Draft):
        pass
    second = core.start(fill("b"))
    while not isinstance(next(first), Draft):
        pass
    assert joint.batches == batches
    first.close()
    second.close()


def test_a_lone_job_takes_its_steps_by_itself() -> None:
    joint = JointScripted(saying(TEXT))
    core = core_of(joint)
    assert finish({"a": core.start(fill("a"))})["a"].text
    assert joint.batches == []
    assert core.counts.passes == 0


def test_families_that_do_not_gain_are_left_as_they_are() -> None:
    scripted = ScriptedCore()
    assert batched(scripted, BatchLimits()) is scripted
    plain = CanvasCore(ScriptedCanvasModel(saying(TEXT)))
    assert batched(plain, BatchLimits()) is plain
    joint = CanvasCore(JointScripted(saying(TEXT)))
    assert batched(joint, BatchLimits(canvases=1)) is joint


@pytest.mark.parametrize("layout", ["dream", "dreamon", "llada", "sdar", "diffusion-gemma"])
def test_every_kind_of_family_gives_the_same_text_in_a_batch(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACUNA_HOME", str(tmp_path / "home"))
    folder = writers()[layout](tmp_path / layout, 0)
    config = EngineConfig(model=str(folder), device="cpu", threads=1)
    alone = load_core(config, lambda stage, done: None)
    core = batched(load_core(config, lambda stage, done: None), BatchLimits(window_s=60.0))
    assert isinstance(core, BatchingCore)
    before = [f"def add{count}(a, b):\n    {'# add' * count}\n    return " for count in range(6)]
    requests: list[Fill | Rewrite] = [
        Fill(str(count), "python", text, "\n\nprint(1)\n", max_tokens=12) for count, text in enumerate(before)
    ]
    requests.append(Rewrite("r", "python", "", "x = 1\n", "", "Add one.", max_tokens=16, seed=3))
    done = finish({request.id: core.start(request) for request in requests})
    same_results([done[request.id] for request in requests], [drive(alone, request)[0] for request in requests])
    assert core.counts.passes > 0
