"""Work for idle time: which prompts are prepared, that it yields at once, and that no answer depends on it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from engine.core import EngineCore
from engine.foresight import likely_next
from engine.job import Preparation, PreparingCore, Run
from engine.loop import CancelAsked, DrainAsked, EngineLoop, Inward, Loaded, Outward, Replied, Stopped, Submitted
from engine.models.tiny import tiny_denoiser
from engine.protocol.messages import Cancelled, Done, Failed, Fill, Rewrite
from engine.quality import Gates
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.scripted_core import ScriptedCore
from tests.fakes.word_model import WordModel

WORDS = [b"\n", b" ", b"x", b"y", b"z", b"+"]
SECRET = "SECRET_MARK_42"


def fill(job_id: str, script: str, client: int = 1) -> Submitted:
    return Submitted(client, Fill(job_id, "python", script, SECRET), 0.0)


def test_the_next_line_is_expected_then_the_line_behind_all() -> None:
    request = Fill("1", "python", "a = ", "\nb", draft="old")
    assert [each.prefix for each in likely_next(request, "1")] == ["a = 1\n"]
    several = likely_next(request, "(\n    1\n)")
    assert [each.prefix for each in several] == ["a = (\n    ", "a = (\n    1\n)\n"]
    indented = Fill("1", "python", "if a:\n\tb = ", "\nb")
    assert [each.prefix for each in likely_next(indented, "1")] == ["if a:\n\tb = 1\n\t"]
    assert all((each.suffix, each.draft) == ("\nb", "") for each in several)


def test_an_answer_taken_leaves_nothing_to_encode_for_the_next_line() -> None:
    model = WordModel(WORDS, {b"x": [b"+"], b"+": [b"y"]})
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    assert isinstance(engine, PreparingCore)
    text = drive(engine, Fill("1", "python", "x\nx", "\nz\n", max_tokens=8))[0].text
    model.encoded.clear()
    steps = list(engine.prepare())
    # x \n x + y \n <suffix> \n z \n: the first two rows are there, the rest was encoded.
    assert sum(model.encoded) == 1 + 6 + 1 + 3 - 3
    assert len(steps) == len(model.encoded)
    model.encoded.clear()
    done, _, _ = drive(engine, Fill("2", "python", f"x\nx{text}\n", "\nz\n", max_tokens=8))
    assert model.encoded == []
    assert done.stats.cached_tokens == done.stats.prompt_tokens
    list(engine.prepare())


def test_a_step_is_a_few_rows_and_what_was_done_is_kept() -> None:
    request = Fill("1", "python", "x = 1\n" * 9, "\n" + "y = 2\n" * 9, max_tokens=3)
    engine = EngineCore(tiny_denoiser(seed=4), clock=Clock(), threads=1, gates=Gates.open())
    drive(engine, request)
    whole = len(list(EngineCoreTwin(request).prepare()))
    first = engine.prepare()
    for _ in range(3):
        next(first)
    first.close()
    assert len(list(engine.prepare())) == whole - 3
    assert list(engine.prepare()) == []


class EngineCoreTwin(EngineCore):
    """An engine that has answered `request`."""

    def __init__(self, request: Fill) -> None:
        super().__init__(tiny_denoiser(seed=4), clock=Clock(), threads=1)
        drive(self, request)


def test_without_memory_to_spare_nothing_is_prepared() -> None:
    model = WordModel(WORDS, {})
    engine = EngineCore(model, clock=Clock(), threads=1, gates=Gates.open())
    drive(engine, Fill("1", "python", "x\nx", "\nz\n", max_tokens=8))
    model.spares = False
    assert list(engine.prepare()) == []


@pytest.mark.parametrize("prepared", [0, 1, 2, 50])
def test_no_text_depends_on_what_was_prepared(prepared: int) -> None:
    request = Fill("1", "python", "def f(x):\n    return ", "\n\nprint(f(2))\n", max_tokens=12)
    engine = EngineCoreTwin(request)
    text = drive(engine, request)[0].text
    following = Fill("2", "python", f"{request.prefix}{text.partition(chr(10))[0]}\n", request.suffix, max_tokens=12)
    preparation = engine.prepare()
    for _, _ in zip(range(prepared), preparation, strict=False):
        pass
    preparation.close()
    fresh = EngineCore(tiny_denoiser(seed=4), clock=Clock(), threads=1, gates=Gates.open())
    assert drive(engine, following)[0].text == drive(fresh, following)[0].text


# The loop


class PreparingScript(ScriptedCore):
    """A scripted core with idle work without end; `while_idle` is called at each of its steps."""

    def __init__(self, while_idle: Callable[[int], None]) -> None:
        super().__init__()
        self.while_idle = while_idle
        self.post: Callable[[Inward], None] = lambda message: None
        self.begun = 0
        self.closed = 0

    def start(self, request: Fill | Rewrite) -> Run:
        assert self.begun == self.closed, "idle work holds a context while a job begins"
        return super().start(request)

    def prepare(self) -> Preparation:
        return self._prepare()

    def _prepare(self) -> Preparation:
        self.begun += 1
        try:
            for step in range(1_000_000):
                self.order.append("idle")
                self.while_idle(step)
                yield None
        finally:
            self.closed += 1


def run_loop(core: PreparingScript, *first: Inward) -> list[Outward]:
    """The loop with `first`; `core.post` takes the rest. What it said."""
    said: list[Outward] = []

    def hear(outward: Outward) -> None:
        said.append(outward)
        if isinstance(outward, Loaded):
            for message in first:
                loop.post(message)

    loop = EngineLoop(lambda progress: core, hear, clock=lambda: 0.0)
    core.post = loop.post
    loop.run()
    assert said[-1] == Stopped()
    return said


def finals(said: list[Outward]) -> list[str]:
    return [
        each.reply.id
        for each in said
        if isinstance(each, Replied) and isinstance(each.reply, Done | Cancelled | Failed)
    ]


def test_a_request_waits_for_one_step_of_idle_work_at_most() -> None:
    def ask(step: int) -> None:
        if step == 5:
            core.post(fill("b", "steps=2") if "b" not in core.computed else DrainAsked())

    core = PreparingScript(ask)
    said = run_loop(core, fill("a", "steps=1"))
    assert finals(said) == ["a", "b"]
    assert core.order == ["a", *["idle"] * 6, "b", "b", *["idle"] * 6]
    assert core.begun == core.closed == 2


def test_idle_work_begins_when_the_last_job_is_gone_also_cancelled() -> None:
    def leave(step: int) -> None:
        core.post(DrainAsked())

    core = PreparingScript(leave)
    said = run_loop(core, fill("a", "steps=1", 1), fill("b", "steps=0", 2), CancelAsked(2, "b"))
    assert sorted(finals(said)) == ["a", "b"]
    assert core.order.count("idle") == 1
    assert core.order[-1] == "idle"


def test_a_fault_of_idle_work_ends_it_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    def fail(step: int) -> None:
        core.post(fill("b", "steps=2") if "b" not in core.computed else DrainAsked())
        raise RuntimeError(SECRET)

    core = PreparingScript(fail)
    with caplog.at_level(logging.DEBUG):
        said = run_loop(core, fill("a", "steps=1"))
    assert finals(said) == ["a", "b"]
    assert "RuntimeError" in caplog.text
    assert SECRET not in caplog.text
