"""A text that gates refuse is made again causally, once: what that costs, who is told, and what the breaker learns."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

import engine.core
from engine.core import EngineCore
from engine.diffusion.denoise import Denoised, denoise
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.job import Run
from engine.models.tiny import tiny_denoiser
from engine.monitor import Course
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Fill, FurtherHole, Rewrite, Stats, Stop
from engine.quality import Fault, Gates, Verdict
from engine.router import Decision
from engine.second_try import Attempt, Judging, with_second_try
from tests.fakes.clock import Clock
from tests.fakes.driving import drive, result_of

FILL = Fill("1", "none", "def f(x):\n    return ", "\n\nprint(f(2))\n", max_tokens=12, wants_drafts=True)
EDIT = Rewrite("2", "none", "", "x = 1\ny = 2\n", "", "Add one.", max_tokens=12, wants_drafts=True)
# A model of random weights is never sure of anything.
DOUBTFUL = replace(Gates.open(), least_confidence=0.9)
DIFFUSION = Decision("diffusion", VerifyConfig(), "rows are cheap")
TEXT = Denoised("text", "end", 3, 8, (("masks", 6, 2),), (1, 2))
DOUBT = Verdict(0.1, (Fault("confidence", "confidence 0.10 is low"),))
SURE = Verdict(0.9)


def core(gates: Gates, config: VerifyConfig | None = None, share: float = 100.0) -> EngineCore:
    model = tiny_denoiser(seed=4)
    return EngineCore(model, clock=Clock(0.001), threads=1, gates=gates, config=config, diffusion_share=share)


@pytest.mark.parametrize("request_", [FILL, EDIT, replace(FILL, draft="x + 1")], ids=["fill", "rewrite", "draft"])
def test_the_causal_text_is_that_of_causal_decoding_and_costs_fewer_passes(request_: Fill | Rewrite) -> None:
    once, drafts, _ = drive(core(Gates.open()), request_)
    twice, drafts_again, _ = drive(core(DOUBTFUL), request_)
    alone, _, _ = drive(core(Gates.open(), CAUSAL), request_)
    stats = twice.stats
    assert twice.text == alone.text == once.text
    assert (once.stats.route, once.stats.gates, once.stats.fallback) == ("diffusion", (), False)
    assert (stats.route, stats.gates, stats.fallback) == ("causal", ("confidence",), True)
    assert "made again causally, for confidence" in stats.reason
    assert stats.confidence == pytest.approx(once.stats.confidence)
    # All of the first text is checked in one or two passes.
    assert once.stats.passes < stats.passes <= once.stats.passes + 2 < once.stats.passes + alone.stats.passes
    # What was told as settled stays: the second text is not told step by step.
    assert drafts_again == drafts
    assert stats.ms_first_draft == once.stats.ms_first_draft


def test_a_text_of_a_seed_becomes_the_likeliest_one() -> None:
    def of(gates: Gates, seed: int) -> Done:
        served = EngineCore(tiny_denoiser(seed=20), clock=Clock(), threads=1, gates=gates)
        return drive(served, replace(EDIT, seed=seed))[0]

    drawn, likeliest = of(Gates.open(), 3), of(Gates.open(), 0)
    assert drawn.text != likeliest.text
    # The noise of a seed is no probability, so doubt is not what speaks against it.
    kept = of(DOUBTFUL, 3)
    assert (kept.text, kept.stats.confidence, kept.stats.fallback) == (drawn.text, None, False)
    again = of(replace(Gates.open(), longest_line=0), 3)
    assert (again.text, again.stats.gates, again.stats.fallback) == (likeliest.text, ("length",), True)


def test_every_hole_is_judged_and_the_answer_tells_of_all() -> None:
    request = replace(FILL, further=(FurtherHole("\ny = "),), wants_drafts=False)
    engine = core(DOUBTFUL)
    done, _, _ = drive(engine, request)
    plain, _, _ = drive(core(Gates.open()), request)
    assert [hole.text for hole in done.holes] == [hole.text for hole in plain.holes]
    assert (done.stats.fallback, done.stats.gates) == (True, ("confidence",))
    assert 0.0 < (done.stats.confidence or 0.0) < 0.9
    causal, diffusion = engine.monitored.routes
    assert (causal.done, diffusion.fallbacks) == (1, 2)
    assert dict(diffusion.gate_failures) == dict(causal.gate_failures) == {"confidence": 2}


def test_gates_both_texts_fail_do_not_open_the_breaker() -> None:
    engine = core(DOUBTFUL)
    for number in range(12):
        assert drive(engine, replace(FILL, id=str(number)))[0].stats.fallback
    breaker = engine.monitored.breaker
    assert breaker is not None
    assert (breaker.state, breaker.failures) == ("closed", 0)


class _Broken:
    """Stands for `engine.core.denoise`: it breaks down wherever drafts are used without a text that was refused."""

    def __init__(self, real: Callable[..., object]) -> None:
        self.real = real
        self.is_broken = True

    def __call__(self, *arguments: object) -> object:
        config = arguments[4]
        assert isinstance(config, VerifyConfig)
        if self.is_broken and config.ngram:
            raise RuntimeError("SECRET of a document")
        return self.real(*arguments)


def test_a_route_that_breaks_down_is_left_closed_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, _, _ = drive(core(Gates.open()), FILL)
    broken = _Broken(denoise)
    monkeypatch.setattr(engine.core, "denoise", broken)
    clock = Clock()
    served = EngineCore(tiny_denoiser(seed=4), clock=clock, threads=1, gates=Gates.open())

    def stats() -> Stats:
        done, _, _ = drive(served, FILL)
        assert done.text == plain.text
        return done.stats

    with caplog.at_level(logging.DEBUG):
        for _ in range(5):
            told = stats()
            assert (told.route, told.gates, told.fallback) == ("causal", ("fault",), True)
    assert "SECRET" not in caplog.text
    assert "the diffusion route broke down: RuntimeError" in caplog.text
    told = stats()
    assert (told.route, told.gates, told.fallback) == ("causal", (), False)
    assert "closed after failures" in told.reason
    breaker = served.monitored.breaker
    assert breaker is not None
    clock.now += breaker.retry_in_s
    assert stats().fallback
    assert not stats().fallback
    broken.is_broken = False
    clock.now += 1000.0
    assert stats().route == "diffusion"
    assert stats().route == "diffusion"
    causal, diffusion = served.monitored.routes
    assert (causal.done, diffusion.done, diffusion.fallbacks) == (8, 2, 6)
    assert diffusion.gate_failures == (("fault", 6),)


def test_a_share_of_nothing_is_causal_and_gives_the_same_text() -> None:
    held, _, _ = drive(core(Gates.open(), share=0.0), FILL)
    free, _, _ = drive(core(Gates.open()), FILL)
    assert (held.text, held.stats.route, free.stats.route) == (free.text, "causal", "diffusion")
    assert "held back to 0 %" in held.stats.reason


def test_a_refused_request_is_nobodys_failure() -> None:
    engine = core(Gates.open())
    with pytest.raises(EngineError, match="max_tokens"):
        drive(engine, replace(FILL, max_tokens=0))
    assert engine.monitored.routes == ()


def test_a_cancel_in_either_text_counts_once() -> None:
    engine = core(DOUBTFUL)
    run: Run = engine.start(FILL)
    steps = drive(core(DOUBTFUL), FILL)[2]
    for _ in range(steps - 1):
        next(run)
    run.close()
    assert [(route.route, route.cancelled) for route in engine.monitored.routes] == [("diffusion", 1)]
    assert drive(engine, FILL)[0].text == drive(core(Gates.open()), FILL)[0].text


# The rule alone


def steps(result: Denoised | Exception, verdict: Verdict = SURE) -> Judging:
    yield None
    if isinstance(result, Exception):
        raise result
    return result, verdict


def tried(
    first: Denoised | Exception,
    first_verdict: Verdict,
    second: Denoised | Exception = TEXT,
    second_verdict: Verdict = SURE,
    *,
    decision: Decision = DIFFUSION,
    may_repeat: bool = True,
    is_drawn: bool = False,
) -> tuple[Attempt, Course]:
    course = Course()
    whole = with_second_try(
        lambda: steps(first, first_verdict),
        lambda refused, causal: steps(second, second_verdict),
        decision,
        course,
        may_repeat=may_repeat,
        is_drawn=is_drawn,
    )
    return result_of(whole), course


@pytest.mark.parametrize(
    ("first", "first_verdict", "second_verdict", "is_drawn", "is_second", "went_well"),
    [
        pytest.param(TEXT, SURE, SURE, False, False, True, id="nothing speaks against the first"),
        pytest.param(TEXT, DOUBT, SURE, False, True, False, id="the other route does better"),
        pytest.param(TEXT, DOUBT, DOUBT, False, True, True, id="the other route does no better"),
        pytest.param(TEXT, DOUBT, SURE, True, True, True, id="chance did it"),
        pytest.param(OSError(), SURE, SURE, False, True, False, id="it broke down"),
        pytest.param(OSError(), SURE, DOUBT, False, True, False, id="it broke down on a hard gap"),
    ],
)
def test_what_the_breaker_learns(
    first: Denoised | Exception,
    first_verdict: Verdict,
    second_verdict: Verdict,
    is_drawn: bool,
    is_second: bool,
    went_well: bool,
) -> None:
    attempt, course = tried(first, first_verdict, TEXT, second_verdict, is_drawn=is_drawn)
    assert (attempt.is_second, course.went_well, course.fallbacks) == (is_second, went_well, int(is_second))


def test_the_causal_route_has_no_other() -> None:
    attempt, course = tried(TEXT, DOUBT, decision=Decision("causal", CAUSAL, "rows are dear"))
    assert (attempt.is_second, attempt.gates, course.went_well) == (False, ("confidence",), None)
    assert course.refused == [("causal", "confidence")]
    with pytest.raises(OSError, match="disk"):
        tried(OSError("disk"), SURE, decision=Decision("causal", CAUSAL, "rows are dear"))


def test_a_request_s_own_fault_is_not_tried_again() -> None:
    with pytest.raises(EngineError, match="too long"):
        tried(EngineError("window_exceeded", "too long", "shorten"), SURE)


def test_where_nothing_may_be_made_again_gates_are_only_told() -> None:
    attempt, course = tried(TEXT, DOUBT, may_repeat=False)
    assert (attempt.is_second, attempt.gates, course.went_well) == (False, ("confidence",), True)


@pytest.mark.parametrize("stop", ["deadline", "end"])
def test_what_the_deadline_cut_off_does_not_replace_a_whole_text(stop: Stop) -> None:
    second = Denoised("te", stop, 1, 1, (("masks", 1, 1),), (1,))
    attempt, _ = tried(TEXT, DOUBT, second)
    assert attempt.result.text == ("text" if stop == "deadline" else "te")
    assert (attempt.result.passes, attempt.result.drafts) == (4, (("masks", 7, 3),))
    assert attempt.decision.route == ("diffusion" if stop == "deadline" else "causal")
