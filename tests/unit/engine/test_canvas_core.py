"""The core of canvas families on a scripted model: drafts, stats, limits, deadlines, cancelling, seeds, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.canvas import Canvas
from engine.canvas_serving.core import CanvasCore
from engine.canvas_serving.finished_text import draft_text
from engine.diffusion.canvas_step import CanvasStep
from engine.diffusion.sampling import SamplingConfig
from engine.models.canvas_model import CanvasFacts, Known
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Failed, Fill, Rewrite
from engine.tokenizer import ByteTokenizer
from engine.watchable import WatchableCore
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.running_service import greeted, running
from tests.fakes.scripted_canvas import (
    DELETE,
    END,
    EXPAND,
    ScriptedCanvasModel,
    peaked,
    random_script,
    saying,
    scripted_facts,
    uniform_facts,
)

FILL = Fill("1", "python", "def f(x):\n    return ", "", max_tokens=32, wants_drafts=True)
BOTH_SIDES = replace(FILL, suffix="\n\nprint(f(2))\n")
EDIT = Rewrite("2", "python", "", "x = 1\ny = 2\n", "", "Add one", max_tokens=64, wants_drafts=True)
SAMPLED = SamplingConfig(temperature_start=1.0, temperature_end=1.0, deterministic=False)
ONE_BY_ONE = SamplingConfig(confidence_threshold=1.0)


def core(
    model: ScriptedCanvasModel, config: SamplingConfig | None = None, clock: Callable[[], float] | None = None
) -> CanvasCore:
    return CanvasCore(model, config=config, threads=1, clock=clock or Clock())


def test_a_fill_tells_its_drafts_and_its_numbers() -> None:
    model = ScriptedCanvasModel(saying("x + 1"))
    done, drafts, steps = drive(core(model, ONE_BY_ONE, Clock(0.001)), FILL)
    assert (done.id, done.text, done.stats.stop) == ("1", "x + 1", "end")
    assert [draft.step for draft in drafts] == list(range(1, steps + 1))
    assert all(draft.id == "1" and 0 <= draft.settled <= len(draft.text) for draft in drafts)
    assert drafts[-1].text == "x + 1"
    stats = done.stats
    assert (stats.route, stats.passes, stats.tokens) == ("diffusion", len(model.calls), 5)
    assert stats.prompt_tokens == len(FILL.prefix)
    assert 0 < stats.ms_encode <= stats.ms_first_draft <= stats.ms_total
    assert "confidence" in stats.reason
    assert "low" not in stats.reason


def test_known_text_is_read_chunk_by_chunk_and_a_cancel_waits_for_one_only() -> None:
    model = ScriptedCanvasModel(saying("x + 1"), chunks=3)
    run = core(model, ONE_BY_ONE).start(FILL)
    assert [next(run), next(run), model.read, len(model.calls)] == [None, None, 2, 0]
    run.close()
    assert (model.read, len(model.calls), model.closed) == (2, 0, 1)


def test_the_time_for_the_prompt_ends_with_its_last_chunk() -> None:
    model = ScriptedCanvasModel(saying("x + 1"), chunks=3)
    done, drafts, steps = drive(core(model, ONE_BY_ONE, Clock(0.001)), FILL)
    assert (model.read, steps) == (3, 2 + len(drafts))
    assert 0 < done.stats.ms_encode <= done.stats.ms_first_draft


def test_who_watches_sees_every_step() -> None:
    engine = core(ScriptedCanvasModel(saying("x + 1")), ONE_BY_ONE)
    assert isinstance(engine, WatchableCore)
    seen: list[CanvasStep] = []
    engine.watch(seen.append)
    _, drafts, _ = drive(engine, FILL)
    assert [step.step for step in seen] == [draft.step for draft in drafts]
    engine.watch(None)
    drive(engine, FILL)
    assert len(seen) == len(drafts)


def test_drafts_are_kept_from_who_did_not_ask() -> None:
    _, drafts, steps = drive(core(ScriptedCanvasModel(saying("x + 1")), ONE_BY_ONE), replace(FILL, wants_drafts=False))
    assert drafts == []
    assert steps > 1


def test_known_text_stands_where_the_family_sees_it() -> None:
    model = ScriptedCanvasModel(saying("x"))
    drive(core(model), BOTH_SIDES)
    assert model.opened[0] == Known(tuple(BOTH_SIDES.prefix.encode()), tuple(BOTH_SIDES.suffix.encode()))
    assert model.closed == len(model.opened)


def test_several_lengths_are_tried_where_text_follows() -> None:
    model = ScriptedCanvasModel(saying("x"))
    drive(core(model), BOTH_SIDES)
    assert len({given.canvas.length for given in model.calls[0]}) > 1


def test_a_gap_that_holds_text_is_tried_at_its_own_length_and_others_from_that_text() -> None:
    model = ScriptedCanvasModel(saying("abcdefghij"))
    drive(core(model), replace(BOTH_SIDES, draft="abcdefghij"))
    tried = [bytes(token for token in given.canvas.ids.tolist() if token < 256) for given in model.calls[0]]
    lengths = [given.canvas.length for given in model.calls[0]]
    assert 10 in lengths
    assert len(lengths) > 1
    assert tried == [b"abcdefghij"[:length] for length in lengths]


def test_a_family_that_changes_lengths_itself_begins_from_the_present_one() -> None:
    model = ScriptedCanvasModel(saying("abcde"), scripted_facts(expand_id=EXPAND, delete_id=DELETE))
    drive(core(model), replace(BOTH_SIDES, draft="abcde"))
    assert [given.canvas.length for given in model.calls[0]] == [5]


def test_the_settled_part_of_a_draft_is_what_stands_from_the_left() -> None:
    """The right end is sure at once, so that the left settles last."""
    strengths = [3.0, 4.0, 5.0, 6.0, 7.0]
    model = ScriptedCanvasModel(saying("abcde", strengths))
    _, drafts, _ = drive(core(model, SamplingConfig(steps=5, schedule="linear", confidence_threshold=1.0)), FILL)
    assert drafts[0].settled == 0
    assert drafts[-1].settled == len(drafts[-1].text)
    assert all(draft.text.startswith(draft.text[: draft.settled]) for draft in drafts)


@pytest.mark.parametrize("request_", [FILL, BOTH_SIDES, EDIT], ids=["open", "both sides", "rewrite"])
@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts(canvas_length=24, right_context=False)])
def test_the_same_request_gives_the_same_text_whatever_ran_before(request_: Fill | Rewrite, facts: CanvasFacts) -> None:
    config = replace(SAMPLED, sampler="entropy_bound") if facts.noise == "uniform" else SAMPLED
    engine = core(ScriptedCanvasModel(random_script(3), facts), config)
    first, _, _ = drive(engine, request_)
    drive(engine, replace(FILL, prefix="something else"))
    again, _, _ = drive(engine, request_)
    assert again.text == first.text
    assert again.stats.passes == first.stats.passes


def test_interleaved_jobs_do_not_disturb_each_other() -> None:
    script = random_script(5)
    alone = [drive(core(ScriptedCanvasModel(script), SAMPLED), request)[0].text for request in (FILL, EDIT)]
    engine = core(ScriptedCanvasModel(script), SAMPLED)
    runs = [engine.start(FILL), engine.start(EDIT)]
    texts = ["", ""]
    while any(runs):
        for index, run in enumerate(runs):
            try:
                if run is not None:
                    next(run)
            except StopIteration as finished:
                texts[index] = finished.value.text
                runs[index] = None  # type: ignore[call-overload]
    assert texts == alone


def test_closing_a_run_computes_nothing_more_and_gives_the_context_back() -> None:
    model = ScriptedCanvasModel(random_script(1))
    run = core(model, ONE_BY_ONE).start(FILL)
    next(run)
    next(run)
    calls = len(model.calls)
    run.close()
    assert (len(model.calls), model.closed) == (calls, len(model.opened))


def test_starting_computes_nothing() -> None:
    model = ScriptedCanvasModel(random_script(1))
    core(model).start(FILL)
    assert (model.calls, model.opened) == ([], [])


def test_at_the_deadline_the_best_draft_comes_back() -> None:
    strengths = [9.0 - index / 4 for index in range(20)]
    model = ScriptedCanvasModel(saying("abcdefghijklmnopqrst", strengths))
    request = replace(FILL, deadline_ms=60)
    done, drafts, _ = drive(core(model, ONE_BY_ONE, Clock(0.01)), request)
    assert done.stats.stop == "deadline"
    assert 0 < done.stats.passes < 20
    assert drafts
    assert "abcdefghijklmnopqrst".startswith(done.text)


def test_max_lines_cuts_the_text_and_says_so() -> None:
    done, drafts, _ = drive(core(ScriptedCanvasModel(saying("a\nb\nc"))), replace(FILL, max_lines=1))
    assert (done.text, done.stats.stop) == ("a", "lines")
    assert all("\n" not in draft.text for draft in drafts)


@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts(canvas_length=24, right_context=False)])
def test_max_tokens_is_honoured_also_by_families_that_write_whole_canvases(facts: CanvasFacts) -> None:
    config = replace(SAMPLED, sampler="entropy_bound") if facts.noise == "uniform" else None
    done, drafts, _ = drive(core(ScriptedCanvasModel(saying("x" * 100), facts), config), replace(FILL, max_tokens=7))
    assert (done.text, done.stats.stop, done.stats.tokens) == ("x" * 7, "budget", 7)
    assert all(len(draft.text) <= 7 for draft in drafts)


def test_a_rewrite_starts_from_the_selection_and_ends_at_its_fence() -> None:
    model = ScriptedCanvasModel(saying("x = 2\ny = 3\n```"))
    done, _, _ = drive(core(model), EDIT)
    assert (done.id, done.text, done.stats.stop) == ("2", "x = 2\ny = 3", "end")
    first = bytes(token for token in model.calls[0][0].canvas.ids.tolist() if token < 256)
    assert first == b"x = 1\ny = 2\n```"


def test_a_rewrite_that_finds_no_end_is_cut_off_and_says_so() -> None:
    done, _, _ = drive(core(ScriptedCanvasModel(saying("x" * 200))), EDIT)
    assert (set(done.text), done.stats.stop) == ({"x"}, "budget")


@pytest.mark.parametrize(
    "facts",
    [
        scripted_facts(),
        scripted_facts(block=4, right_context=False),
        uniform_facts(canvas_length=16, right_context=False),
    ],
    ids=["one canvas", "blocks", "canvases"],
)
def test_a_rewrite_may_become_longer_than_the_selection(facts: CanvasFacts) -> None:
    wanted = list(b"x = 1\ny = 2\nz = 3\n```") + [END] * 64

    def longer(known: Known, canvas: Canvas) -> torch.Tensor:
        done = len(known.prefix) - model.lead
        return peaked(wanted[done : done + canvas.length])

    class Counting(ScriptedCanvasModel):
        @property
        def lead(self) -> int:
            return len(self.opened[0].prefix)

    model = Counting(longer, facts)
    config = SamplingConfig(sampler="entropy_bound") if facts.noise == "uniform" else None
    done, _, _ = drive(core(model, config), EDIT)
    assert (done.text, done.stats.stop) == ("x = 1\ny = 2\nz = 3", "end")


def test_further_texts_are_drawn_with_other_seeds() -> None:
    def undecided(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = peaked(([*b"a;"] + [256] * canvas.length)[: canvas.length])
        logits[0, list(b"abcdefgh")] = 8.0
        return logits

    request = replace(FILL, alternatives=4)
    done, drafts, steps = drive(core(ScriptedCanvasModel(undecided)), request)
    texts = [done.text, *done.alternatives]
    assert 2 <= len(texts) == len(set(texts)) <= 4
    assert all(text[0] in "abcdefgh" and text[1:] == ";" for text in texts)
    assert len(drafts) < steps
    assert drive(core(ScriptedCanvasModel(undecided)), request)[0].alternatives == done.alternatives
    assert drive(core(ScriptedCanvasModel(undecided)), FILL)[0].text == done.text


def test_no_further_texts_after_the_deadline_or_where_the_model_is_sure() -> None:
    sure = ScriptedCanvasModel(saying("x"))
    assert drive(core(sure), replace(FILL, alternatives=3))[0].alternatives == ()
    late = drive(core(ScriptedCanvasModel(random_script(2)), SAMPLED, Clock(0.01)), replace(FILL, alternatives=3))
    hurried = replace(FILL, alternatives=3, deadline_ms=30)
    done, _, _ = drive(core(ScriptedCanvasModel(random_script(2)), SAMPLED, Clock(0.01)), hurried)
    assert done.alternatives == ()
    assert late[0].alternatives


def test_what_the_model_doubts_is_told_in_the_reason() -> None:
    done, _, _ = drive(core(ScriptedCanvasModel(saying("what", 1.0))), FILL)
    assert "is low" in done.stats.reason
    assert (done.stats.gates, done.stats.fallback) == (("confidence",), False)


def test_jobs_are_counted_for_the_one_route_there_is() -> None:
    engine = core(ScriptedCanvasModel(saying("(", 1.0)))
    done, _, _ = drive(engine, FILL)
    abandoned = engine.start(FILL)
    next(abandoned)
    abandoned.close()
    told = engine.monitored
    (route,) = told.routes
    assert (route.route, route.done, route.cancelled, route.fallbacks) == ("diffusion", 1, 1, 0)
    assert dict(route.gate_failures) == dict.fromkeys(done.stats.gates, 1)
    assert "confidence" in done.stats.gates
    assert told.breaker is None


def test_broken_characters_are_left_out_and_counted() -> None:
    def broken(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked(([ord("a"), 0xC3, ord("b"), 0x80] + [256] * canvas.length)[: canvas.length])

    done, drafts, _ = drive(core(ScriptedCanvasModel(broken)), FILL)
    assert done.text == "ab"
    assert "2 bytes that make no character" in done.stats.reason
    assert all(draft.text.isascii() for draft in drafts)


@pytest.mark.parametrize(
    ("settled", "rest", "expected"),
    [
        (b"ab", b"cd", ("abcd", 2)),
        ("a€".encode()[:2], "€".encode()[1:], ("a€", 1)),
        (b"a\xe2", b"b", ("ab", 1)),
        (b"", b"\xff", ("", 0)),
        (b"\xff", b"a", ("a", 0)),
    ],
)
def test_a_draft_s_text_is_always_text(settled: bytes, rest: bytes, expected: tuple[str, int]) -> None:
    assert draft_text(ByteTokenizer(), list(settled), list(rest)) == expected


@pytest.mark.parametrize(
    ("request_", "kind", "words"),
    [
        (replace(FILL, max_tokens=0), "bad_request", "max_tokens"),
        (replace(FILL, alternatives=0), "bad_request", "alternatives"),
        (replace(EDIT, selection=" \n"), "bad_request", "selection"),
        (replace(EDIT, instruction=" "), "bad_request", "instruction"),
        (replace(FILL, draft="x" * 40), "window_exceeded", "40 tokens, and 32"),
        (replace(EDIT, instruction="use names " * 900), "window_exceeded", "window holds"),
    ],
)
def test_what_cannot_be_served_is_refused_before_the_model_is_asked(
    request_: Fill | Rewrite, kind: str, words: str
) -> None:
    model = ScriptedCanvasModel(saying("x"))
    with pytest.raises(EngineError, match=words) as refused:
        next(core(model).start(request_))
    assert (refused.value.kind, bool(refused.value.remedy)) == (kind, True)
    assert model.opened == []


def test_an_empty_file_can_be_filled() -> None:
    done, _, _ = drive(core(ScriptedCanvasModel(saying("x = 1"))), Fill("1", "python", "", "", max_tokens=16))
    assert done.text == "x = 1"


def test_the_facts_are_the_model_s() -> None:
    facts = core(ScriptedCanvasModel(saying("x"))).facts
    assert (facts.family, facts.model, facts.window_tokens, facts.threads) == ("scripted", "scripted", 4096, 1)


class Lossy(ByteTokenizer):
    """Normalises what it reads."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.replace("é", "e"))


@pytest.mark.asyncio
async def test_refusals_reach_the_client_as_failures_with_a_remedy(tmp_path: Path) -> None:
    model = ScriptedCanvasModel(saying("x"), tokenizer=Lossy())
    engine = CanvasCore(model, threads=1)
    requests: list[tuple[Fill | Rewrite, str]] = [
        (replace(FILL, id="a", prefix="é"), "round_trip"),
        (replace(FILL, id="b", draft="x" * 99), "window_exceeded"),
        (replace(EDIT, id="c", selection="x" * 5000, max_tokens=9999), "window_exceeded"),
        (replace(FILL, id="d", max_tokens=0), "bad_request"),
    ]
    async with running(tmp_path, lambda progress: engine) as service, greeted(service.address) as client:
        for request, kind in requests:
            client.send(request)
            reply = await client.receive()
            assert isinstance(reply, Failed)
            assert (reply.id, reply.kind, bool(reply.remedy)) == (request.id, kind, True)
        client.send(replace(FILL, id="e", wants_drafts=False))
        reply = await client.receive()
        assert isinstance(reply, Done)
        assert reply.text == "x"


def test_a_rewrite_s_seed_draws_another_text() -> None:
    def undecided(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = peaked(([*b"a;"] + [256] * canvas.length)[: canvas.length])
        logits[0, list(b"abcdefgh")] = 8.0
        return logits

    texts = [drive(core(ScriptedCanvasModel(undecided)), replace(EDIT, seed=seed))[0].text for seed in range(6)]
    assert drive(core(ScriptedCanvasModel(undecided)), EDIT)[0].text == texts[0]
    assert len(set(texts)) > 2
    assert all(text[0] in "abcdefgh" and text[1:] == ";" for text in texts)
    assert [drive(core(ScriptedCanvasModel(undecided)), replace(EDIT, seed=seed))[0].text for seed in range(6)] == texts
