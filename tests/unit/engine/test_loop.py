"""The loop without sockets or threads: what goes in, what comes out, and what is computed in between."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import cast

import pytest

from engine.job import Core, Run
from engine.loop import (
    CancelAsked,
    ClientLeft,
    DrainAsked,
    EngineLoop,
    Inward,
    Loaded,
    LoadFailed,
    LoadingMoved,
    Outward,
    Replied,
    Stopped,
    Submitted,
    log_fault,
)
from engine.protocol.errors import EngineError
from engine.protocol.messages import Cancelled, Done, Draft, Facts, Failed, Fill, Reply, Rewrite
from tests.fakes.scripted_core import ScriptedCore

SECRET = "SECRET_MARK_42"


class Bench:
    """A loop whose output decides what is put in next: `when` is called with every reply."""

    def __init__(self, core: Core, first: list[Inward], when: Callable[[Bench, Reply], None] | None = None) -> None:
        self.core = core
        self.said: list[Outward] = []
        self.replies: list[tuple[int, Reply]] = []
        self._first = first
        self._when = when
        self.loop = EngineLoop(lambda progress: core, self._hear, clock=lambda: 0.0)

    def _hear(self, outward: Outward) -> None:
        self.said.append(outward)
        if isinstance(outward, Loaded):
            for message in self._first:
                self.loop.post(message)
        if isinstance(outward, Replied):
            self.replies.append((outward.client, outward.reply))
            if self._when is not None:
                self._when(self, outward.reply)
            if len([one for _, one in self.replies if not isinstance(one, Draft)]) == len(self.jobs):
                self.loop.post(DrainAsked())

    @property
    def jobs(self) -> list[Submitted]:
        return [message for message in self._first if isinstance(message, Submitted)]

    def run(self) -> Bench:
        self.loop.run()
        assert self.said[-1] == Stopped()
        return self

    def final(self, client: int = 1) -> dict[str, Reply]:
        """The final replies by job id; fails if a job has two."""
        found: dict[str, Reply] = {}
        for owner, reply in self.replies:
            if owner == client and isinstance(reply, Done | Cancelled | Failed):
                assert reply.id not in found, "two final replies"
                found[reply.id] = reply
        return found


def fill(job_id: str, script: str, client: int = 1, *, wants_drafts: bool = False) -> Submitted:
    return Submitted(client, Fill(job_id, "python", script, SECRET, wants_drafts=wants_drafts), 0.0)


def rewrite(job_id: str, script: str, client: int = 1) -> Submitted:
    return Submitted(client, Rewrite(job_id, "python", "", SECRET, "", script, wants_drafts=True), 0.0)


def test_a_job_yields_its_drafts_and_its_result() -> None:
    bench = Bench(ScriptedCore(), [fill("a", "steps=3 text=abcdef", wants_drafts=True)]).run()
    replies = [reply for _, reply in bench.replies]
    assert [one.text for one in replies[:-1] if isinstance(one, Draft)] == ["ab", "abcd", "abcdef"]
    assert isinstance(replies[-1], Done)
    assert len(replies) == 4


def test_drafts_are_kept_from_who_did_not_ask() -> None:
    assert [type(one) for _, one in Bench(ScriptedCore(), [fill("a", "steps=3")]).run().replies] == [Done]


@pytest.mark.parametrize("twice", [False, True])
def test_a_cancel_takes_effect_before_the_next_step(twice: bool) -> None:
    core = ScriptedCore()

    def cancel_at_two(bench: Bench, reply: Reply) -> None:
        if isinstance(reply, Draft) and reply.step == 2:
            for _ in range(1 + twice):
                bench.loop.post(CancelAsked(1, "a"))

    bench = Bench(core, [fill("a", "steps=0", wants_drafts=True)], cancel_at_two).run()
    assert bench.final() == {"a": Cancelled("a")}
    assert core.computed == {"a": 2}
    assert core.abandoned == ["a"]


def test_cancels_of_unknown_finished_and_foreign_jobs_change_nothing() -> None:
    jobs: list[Inward] = [fill("a", "steps=2"), CancelAsked(1, "b"), CancelAsked(2, "a"), ClientLeft(3)]
    assert isinstance(Bench(ScriptedCore(), jobs).run().final()["a"], Done)


def test_a_cancelled_job_that_never_began_computes_nothing() -> None:
    core = ScriptedCore()
    bench = Bench(core, [fill("a", "steps=0"), CancelAsked(1, "a")]).run()
    assert bench.final() == {"a": Cancelled("a")}
    assert core.computed == {}


def test_a_client_that_leaves_takes_its_jobs_along_and_no_others() -> None:
    jobs: list[Inward] = [fill("a", "steps=0", 1), fill("b", "steps=0", 1), fill("a", "steps=2", 2), ClientLeft(1)]
    bench = Bench(ScriptedCore(), jobs).run()
    assert bench.final(1) == {"a": Cancelled("a"), "b": Cancelled("b")}
    assert isinstance(bench.final(2)["a"], Done)


def test_jobs_of_two_clients_are_interleaved_step_by_step() -> None:
    core = ScriptedCore()
    Bench(core, [fill("a", "steps=3", 1), fill("b", "steps=3", 2)]).run()
    assert core.order in (list("ababab"), list("bababa"))


def test_a_fill_overtakes_a_rewrite() -> None:
    core = ScriptedCore()
    Bench(core, [rewrite("r", "steps=4"), fill("f", "steps=2")]).run()
    assert core.order[:2] == ["f", "f"]


@pytest.mark.parametrize("script", ["fail=window_exceeded", "fail=bad_request"])
def test_a_failure_of_the_core_keeps_its_kind(script: str) -> None:
    failed = Bench(ScriptedCore(), [fill("a", script)]).run().final()["a"]
    assert isinstance(failed, Failed)
    assert failed.kind == script.removeprefix("fail=")
    assert failed.remedy == "nothing to do"


def test_an_unforeseen_fault_ends_its_job_only_and_its_words_stay_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        final = Bench(ScriptedCore(), [fill("a", f"fail=crash text={SECRET}"), fill("b", "steps=2")]).run().final()
    failed = final["a"]
    assert isinstance(failed, Failed)
    assert (failed.kind, "RuntimeError" in failed.message) == ("internal", True)
    assert isinstance(final["b"], Done)
    assert "RuntimeError" in caplog.text
    assert "scripted_core.py" in caplog.text
    assert SECRET not in caplog.text + failed.message


def test_a_recursion_without_end_is_logged_by_its_innermost_places(caplog: pytest.LogCaptureFixture) -> None:
    def deep(left: int) -> None:
        if not left:
            raise RecursionError(SECRET)
        deep(left - 1)

    with pytest.raises(RecursionError) as raised:
        deep(200)
    log_fault("a job failed", raised.value)
    (line,) = caplog.messages
    assert line.count(" deep") == line.count(".py:") == 20
    assert SECRET not in line


class _OddCore(ScriptedCore):
    """A core that breaks the agreement: it returns no Done, runs out of memory, or faults while being closed."""

    def start(self, request: Fill | Rewrite) -> Run:
        return self._odd(request.prefix if isinstance(request, Fill) else "")

    def _odd(self, how: str) -> Run:
        yield from ()
        if how == "memory":
            raise MemoryError
        try:
            while how == "stubborn":
                yield Draft("a", "", 0, 1, 1)
        finally:
            if how == "stubborn":
                raise OSError(SECRET)
        return cast(Done, None)


@pytest.mark.parametrize(("how", "kind"), [("memory", "out_of_memory"), ("nothing", "internal")])
def test_a_core_that_misbehaves_is_answered_for(how: str, kind: str) -> None:
    failed = Bench(_OddCore(), [fill("a", how)]).run().final()["a"]
    assert isinstance(failed, Failed)
    assert failed.kind == kind


def test_a_fault_while_a_job_is_abandoned_still_cancels_it(caplog: pytest.LogCaptureFixture) -> None:
    def cancel(bench: Bench, reply: Reply) -> None:
        if isinstance(reply, Draft):
            bench.loop.post(CancelAsked(1, "a"))

    bench = Bench(_OddCore(), [fill("a", "stubborn", wants_drafts=True)], cancel).run()
    assert bench.final() == {"a": Cancelled("a")}
    assert "OSError" in caplog.text
    assert SECRET not in caplog.text


def test_a_drain_cancels_what_runs_and_refuses_what_waits() -> None:
    def drain(bench: Bench, reply: Reply) -> None:
        if isinstance(reply, Draft):
            for message in (fill("new", "steps=1"), DrainAsked(), fill("late", "steps=1")):
                bench.loop.post(message)

    final = Bench(ScriptedCore(), [rewrite("a", "steps=0")], drain).run().final()
    assert final["a"] == Cancelled("a")
    for job_id in ("new", "late"):
        failed = final[job_id]
        assert isinstance(failed, Failed)
        assert failed.kind == "draining"


def _load(factory: Callable[[Callable[[str, float], None]], Core], *posted: Inward) -> list[Outward]:
    said: list[Outward] = []
    loop = EngineLoop(factory, said.append)
    for message in posted:
        loop.post(message)
    loop.run()
    return said


def test_loading_is_told_step_by_step_within_bounds() -> None:
    def factory(progress: Callable[[str, float], None]) -> Core:
        for fraction in (-1, 0.5, 7):
            progress("weights", fraction)
        raise EngineError("model_missing", "not there", "pull it")

    said = _load(factory)
    assert said[:3] == [LoadingMoved("weights", 0.0), LoadingMoved("weights", 0.5), LoadingMoved("weights", 1.0)]
    assert isinstance(said[3], LoadFailed)
    assert said[3].error.kind == "model_missing"
    assert said[4:] == [Stopped()]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (ValueError(SECRET), "(ValueError)"),
        (OSError(errno.ENOSPC, SECRET, SECRET), "(OSError: No space left on device)"),
        (OSError(SECRET), "(OSError)"),
    ],
)
def test_an_unforeseen_fault_of_the_loading_is_told(fault: Exception, says: str) -> None:
    def factory(progress: Callable[[str, float], None]) -> Core:
        raise fault

    said = _load(factory)
    assert isinstance(said[0], LoadFailed)
    assert said[0].error.kind == "internal"
    assert says in said[0].error.message
    assert SECRET not in said[0].error.message


def test_a_drain_ends_the_loading_at_its_next_word() -> None:
    words: list[str] = []

    def factory(progress: Callable[[str, float], None]) -> Core:
        for word in ("first", "second"):
            words.append(word)
            progress(word, 0.0)
        return ScriptedCore()

    assert _load(factory, ClientLeft(1), DrainAsked()) == [Stopped()]
    assert words == ["first"]


def test_the_facts_are_told_when_the_core_is_there() -> None:
    said = _load(lambda progress: ScriptedCore("m"), DrainAsked())
    assert isinstance(said[0], Loaded)
    assert isinstance(said[0].facts, Facts)
    assert said[0].facts.model == "m"
