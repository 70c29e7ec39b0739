"""The core on a tiny model: steps, stats, cache reuse, deadlines, cancelling, and requests it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.core import EngineCore
from engine.models.tiny import tiny_denoiser
from engine.prompts import CUT_STEP, cut_left, dedent, fence_for, sentence
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, Rewrite
from engine.quality import Gates
from tests.fakes.clock import Clock
from tests.fakes.driving import drive

FILL = Fill("1", "python", "def f(x):\n    return ", "\n\nprint(f(2))\n", max_tokens=12, wants_drafts=True)
EDIT = Rewrite("2", "python", "", "x = 1\ny = 2\n", "", "Add one.", max_tokens=12, wants_drafts=True)


def core(clock: Callable[[], float] | None = None) -> EngineCore:
    return EngineCore(tiny_denoiser(seed=4), clock=clock or Clock(), threads=1, gates=Gates.open())


@pytest.mark.parametrize("request_", [FILL, EDIT], ids=["fill", "rewrite"])
def test_a_job_tells_its_drafts_and_its_numbers(request_: Fill | Rewrite) -> None:
    done, drafts, _ = drive(core(Clock(0.001)), request_)
    assert done.id == request_.id
    assert drafts
    assert all(draft.id == request_.id and draft.settled <= len(draft.text) for draft in drafts)
    assert [draft.step for draft in drafts] == list(range(1, len(drafts) + 1))
    assert done.text.startswith(drafts[-1].text[: drafts[-1].settled])
    stats = done.stats
    assert 0 < stats.passes <= stats.tokens
    assert 0 < stats.ms_encode <= stats.ms_first_draft <= stats.ms_total
    assert stats.reason


def test_drafts_are_kept_from_who_did_not_ask() -> None:
    _, drafts, steps = drive(core(), Fill("1", "python", "a = ", "\n", max_tokens=8))
    assert drafts == []
    assert steps > 1


def test_the_same_request_reuses_its_prompt_and_gives_the_same_text() -> None:
    engine = core()
    first, _, _ = drive(engine, FILL)
    again, _, _ = drive(engine, FILL)
    assert first.stats.cached_tokens == 0
    assert again.stats.cached_tokens == again.stats.prompt_tokens - len("return ")
    assert again.text == first.text


def test_a_long_prompt_is_encoded_in_steps_that_can_be_abandoned() -> None:
    engine = core()
    long = Fill("1", "python", "x = 1\n" * 30, "\n", max_tokens=4)
    run = engine.start(long)
    assert next(run) is None
    run.close()
    done, _, _ = drive(engine, long)
    assert 0 < done.stats.cached_tokens < done.stats.prompt_tokens


def test_interleaved_jobs_do_not_disturb_each_other() -> None:
    alone = drive(core(), FILL)[0].text, drive(core(), EDIT)[0].text
    engine = core()
    runs = {"1": engine.start(FILL), "2": engine.start(EDIT)}
    texts: dict[str, str] = {}
    while runs:
        for name in list(runs):
            try:
                next(runs[name])
            except StopIteration as finished:
                texts[name] = finished.value.text
                del runs[name]
    assert (texts["1"], texts["2"]) == alone


def test_a_deadline_inside_the_prompt_returns_nothing_and_says_so() -> None:
    done, drafts, _ = drive(core(Clock(0.01)), Fill("1", "python", "x = 1\n" * 40, "\n", deadline_ms=5))
    assert (done.text, done.stats.stop, done.stats.passes, drafts) == ("", "deadline", 0, [])


def test_a_deadline_inside_the_gap_returns_what_is_settled() -> None:
    request = Fill("1", "python", "x", "y", max_tokens=64, deadline_ms=60)
    full = drive(core(), Fill("1", "python", "x", "y", max_tokens=64))[0]
    done, _, _ = drive(core(Clock(0.01)), request)
    assert done.stats.stop == "deadline"
    assert 0 < done.stats.passes < full.stats.passes
    assert full.text.startswith(done.text)


@pytest.mark.parametrize(
    ("request_", "kind", "words"),
    [
        (Fill("1", "python", "", "", max_tokens=0), "bad_request", "max_tokens"),
        (Fill("1", "python", "", "", deadline_ms=-1), "bad_request", "deadline"),
        (Rewrite("1", "python", "", "  \n", "", "x"), "bad_request", "selection"),
        (Rewrite("1", "python", "", "x", "", "  "), "bad_request", "instruction"),
        (Rewrite("1", "python", "", "x = 1\n" * 400, "", "x"), "window_exceeded", "window"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_remedy(request_: Fill | Rewrite, kind: str, words: str) -> None:
    with pytest.raises(EngineError, match=words) as refused:
        next(core().start(request_))
    assert refused.value.kind == kind
    assert refused.value.remedy


def test_a_rewrite_too_long_for_its_instruction_is_told_to_shorten_that() -> None:
    with pytest.raises(EngineError) as refused:
        next(core().start(Rewrite("1", "python", "", "x = 1", "", "use names " * 400)))
    assert (refused.value.kind, "shorten the instruction" in refused.value.remedy) == ("window_exceeded", True)


def test_an_empty_file_can_be_filled() -> None:
    done, _, _ = drive(core(), Fill("1", "python", "", "", max_tokens=4))
    assert done.stats.tokens > 0


def test_a_cut_prefix_rests_while_the_text_grows() -> None:
    ids = list(range(1000))
    starts = {cut_left(ids[:end], 300)[0] for end in range(640, 640 + CUT_STEP)}
    assert len(starts) <= 2
    assert all(300 - CUT_STEP < len(cut_left(ids[:end], 300)) <= 300 for end in range(400, 900, 7))
    assert cut_left(ids[:300], 300) == ids[:300]


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    assert fence_for("x = 1") == "```"
    assert fence_for("a ```` b") == "`````"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    a\n      b\n\n    c", "a\n  b\n\nc"),
        ("\ta\n    b", "\ta\n    b"),
        ("a\n    b", "a\n    b"),
        ("", ""),
    ],
)
def test_dedent_takes_the_common_margin_only(text: str, expected: str) -> None:
    assert dedent(text) == expected


def test_an_instruction_is_a_sentence_of_its_own() -> None:
    assert sentence(" add a test ") == "add a test."
    assert sentence("Why?") == "Why?"
