"""The best of several texts for one gap: which one is taken, when none is looked for, and what stays resident."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest
import torch

from engine.alternatives import likeliest_forks
from engine.best_of import BEHIND_CHARS, Around, _clearly_best, _Reader
from engine.choosing import Choosing
from engine.core import EngineCore
from engine.diffusion.denoise import allowed_ids, denoise
from engine.diffusion.verify_config import VerifyConfig
from engine.lead import settle_lead
from engine.models.base import CanvasRows
from engine.models.hybrid import HybridDenoiser
from engine.models.tiny import tiny_denoiser
from engine.prompts import fill_prompt, lead_border
from engine.protocol.errors import EngineError
from engine.protocol.messages import MOST_ALTERNATIVES, Constraints, Done, Draft, Fill, FurtherHole, Gate
from engine.quality import Fault, Gates, Verdict
from engine.router import decide
from engine.second_try import Attempt
from tests.fakes.clock import Clock
from tests.fakes.word_model import WordModel

Likes = Mapping[bytes, Sequence[bytes]]
Result = TypeVar("Result")

WORDS = (b"=", b"p", b"q", b"r", b"s", b";", b"\n", b"z", b"...")
# By the prompt p is the likeliest; read from left to right a line end comes after q and r only.
LIKES: Likes = {b"=": [b"p", b"q", b"r"]}
READS: Likes = {b"=": [b"p", b"q", b"r"], b"p": [b";"], b"q": [b"\n"], b"r": [b"\n"], b"\n": [b"z"]}
ALONE = Fill("1", "", "z\n=", "\nz\nz\nz\n", max_tokens=8)
BEST = replace(ALONE, best_of=4)


def core(likes: Likes = LIKES, reads: Likes = READS, step: float = 0.0) -> EngineCore:
    return EngineCore(WordModel(WORDS, likes, reads), clock=Clock(step), threads=1, gates=Gates.open())


def result_of(steps: Generator[object, None, Result]) -> Result:
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            value: Result = finished.value
            return value


def done_of(engine: EngineCore, request: Fill) -> Done:
    return result_of(engine.start(request))


def test_the_text_that_reads_best_with_what_follows_is_taken() -> None:
    assert done_of(core(), ALONE).text == "p"
    done = done_of(core(), BEST)
    assert (done.text, done.stats.stop, done.stats.tokens) == ("q", "end", 2)


def test_the_likeliest_stays_where_what_follows_goes_on_from_it() -> None:
    reads = {**READS, b"p": [b"\n"], b"q": [b";"]}
    assert done_of(core(reads=reads), BEST).text == "p"


def test_of_equals_the_likelier_is_taken() -> None:
    assert done_of(core({b"=": [b"q", b"r", b"p"]}, {**READS, b"=": []}), BEST).text == "q"


def test_an_unlikely_turn_is_not_looked_at() -> None:
    likes, reads = {b"=": [b"p", b"q", b"r", b"s"]}, {**READS, b"q": [b";"], b"r": [b";"], b"s": [b"\n"]}
    # s has a chance of 3 %.
    assert done_of(core(likes, reads), BEST).text == "p"
    # r has one of 9 %.
    assert done_of(core(reads={**READS, b"q": [b";"]}), BEST).text == "r"


@pytest.mark.parametrize(
    ("chances", "best"),
    [([-1.0, -0.96], 0), ([-1.0, -0.94], 1), ([-1.0, -0.96, -0.5, -0.7], 2), ([-1.0, -1.0], 0), ([-1.0], 0)],
)
def test_the_likeliest_is_left_for_what_reads_clearly_better_only(chances: list[float], best: int) -> None:
    assert _clearly_best(chances) == best


def test_a_text_may_end_where_the_likeliest_went_on() -> None:
    likes = {b"=": [b"p"], b"p": [b"s", b""]}
    reads = {b"=": [b"p"], b"p": [b"\n"], b"s": [b";"], b"\n": [b"z"]}
    assert done_of(core(likes, reads), ALONE).text == "ps"
    assert done_of(core(likes, reads), BEST).text == "p"


def test_a_text_with_an_end_goes_before_one_that_ran_into_its_budget() -> None:
    likes = {b"=": [b"p", b"q"], b"p": [b"p"]}
    assert done_of(core(likes), ALONE).stats.stop == "budget"
    done = done_of(core(likes, {**READS, b"p": [b"\n"], b"q": [b";"]}), BEST)
    assert (done.text, done.stats.stop) == ("q", "end")
    endless = done_of(core({b"=": [b"p", b"q"], b"p": [b"p"], b"q": [b"q"]}), BEST)
    assert (endless.text, endless.stats.stop) == ("p" * 8, "budget")


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(replace(BEST, suffix=""), id="nothing-follows"),
        pytest.param(replace(BEST, suffix="\n\n\n"), id="blanks-follow"),
        pytest.param(replace(BEST, alternatives=2), id="several-texts"),
        pytest.param(replace(BEST, constraints=Constraints(max_characters=40)), id="constraints"),
        pytest.param(replace(BEST, best_of=1), id="one"),
    ],
)
def test_where_nothing_is_weighed_the_answer_is_the_likeliest_text(asked: Fill) -> None:
    done = done_of(core(), asked)
    likeliest = done_of(core(), replace(asked, best_of=1))
    assert (done.text, done.alternatives) == (likeliest.text, likeliest.alternatives) == ("p", likeliest.alternatives)
    assert done.stats.passes == likeliest.stats.passes


def test_a_text_without_likely_turns_costs_one_pass_more() -> None:
    sure: Likes = {b"=": [b"p"]}
    alone, done = done_of(core(sure), ALONE), done_of(core(sure), BEST)
    assert (done.text, done.stats.passes) == ("p", alone.stats.passes + 1)


def test_at_the_deadline_the_answer_is_the_likeliest_text_whole() -> None:
    texts = [done_of(core(step=0.01), replace(BEST, deadline_ms=limit)) for limit in range(20, 600, 20)]
    whole = [done.text for done in texts if done.stats.stop != "deadline"]
    assert whole[0] == "p"
    assert whole[-1] == "q"
    assert sorted(whole) == whole


@pytest.mark.parametrize(("asked", "settled"), [(BEST, {0}), (ALONE, {1})])
def test_nothing_of_a_draft_is_settled_before_the_choice(asked: Fill, settled: set[int]) -> None:
    run, drafts = core().start(replace(asked, wants_drafts=True)), list[Draft]()
    for news in run:
        drafts += [news] if isinstance(news, Draft) else []
    assert {draft.settled for draft in drafts} == settled


def test_each_of_several_holes_is_chosen_so() -> None:
    several = replace(ALONE, further=(FurtherHole("\nz\n="),))
    assert [hole.text for hole in done_of(core(), several).holes] == ["p", "p"]
    assert [hole.text for hole in done_of(core(), replace(several, best_of=4)).holes] == ["q", "q"]


def test_the_prefix_stays_resident_and_what_was_tried_does_not() -> None:
    used = core()
    for number in range(1, 40):
        run = used.start(BEST)
        for _ in range(number):
            if next(run, run) is run:
                break
        run.close()
        assert done_of(used, ALONE).text == "p"
    assert done_of(used, BEST).stats.cached_tokens > 0


@pytest.mark.parametrize("gates", [(), ("length",)])
def test_a_text_that_gates_refuse_does_not_take_the_place_of_one_they_let_be(gates: tuple[Gate, ...]) -> None:
    model = WordModel(WORDS, LIKES, READS)
    prompt = fill_prompt(BEST, model.tokenizer, model.facts.special)
    context = model.context_for(prompt.ids)
    model.encode(context, prompt.ids)
    prompt = settle_lead(model, context, prompt)
    first = result_of(denoise(model, context, prompt.gap, prompt.limits, VerifyConfig(), lambda: False))
    attempt = Attempt(first, decide(prompt.gap, VerifyConfig(), (), can_draft=False), 0.5, gates)
    repeats = Verdict(faults=(Fault("repetition", "it repeats itself"),))
    best = result_of(Choosing(model, context, prompt, BEST, lambda: False).best(attempt, lambda text: repeats))
    assert best.result.text == ("q" if gates else "p")
    assert (best.gates, best.confidence) == ((("repetition",), None) if gates else ((), 0.5))
    assert best.result.passes > first.passes


def mean_chance(model: HybridDenoiser, request: Fill, text: str) -> float:
    """The reference: all of it read at once, in a context of its own."""
    prompt = fill_prompt(request, model.tokenizer, model.facts.special)
    prefix = prompt.ids[: prompt.ids.index(model.facts.special.fim_suffix)]
    known = request.prefix[lead_border(request.prefix) :].encode()
    ids = [*prefix, *known, *text.encode(), *request.suffix[:BEHIND_CHARS].encode()]
    context = tiny_denoiser().context_for([])
    logits = model.step(context, CanvasRows(torch.tensor(ids), torch.arange(len(ids)), None, adapted=False))
    chances = logits[:, : allowed_ids(model)].log_softmax(-1)
    places = range(len(prefix) + len(known), len(ids))
    return sum(float(chances[place - 1, ids[place]]) for place in places) / len(places)


@pytest.mark.parametrize("prefix", ["def f(x):\n    return ", "def f(x):\n    ", ""])
def test_texts_are_read_as_if_each_stood_there_alone(prefix: str) -> None:
    model = tiny_denoiser(seed=3)
    request = Fill("1", "python", prefix, "\n\nprint(f('é'))  # a line that is longer than what is read of it\n")
    prompt = fill_prompt(request, model.tokenizer, model.facts.special)
    context = model.context_for(prompt.ids)
    model.encode(context, prompt.ids)
    reader = _Reader(model, context, prompt, Around(prefix[lead_border(prefix) :], request.suffix))
    for text in ("x + 1", "x + 2", "x + 2", "", "x", "y" * 70, "y" * 40 + "é", "x + 1"):
        assert result_of(reader.chance(text)) == pytest.approx(mean_chance(model, request, text), abs=1e-4)
    again = reader.passes
    result_of(reader.chance("x + 1"))
    assert reader.passes == again, "what was read last is read no second time"


def test_ends_are_turns_where_they_are_wanted_but_not_before_the_first_token() -> None:
    model = tiny_denoiser()
    end = min(model.facts.special.end)
    logits = torch.full((2, allowed_ids(model)), -20.0)
    logits[:, [97, 98]] = torch.tensor([4.0, 2.0])
    logits[:, end] = 3.5
    places = [(fork.depth, fork.token) for fork in likeliest_forks(model, (97, 97), logits, 3, ends=True)]
    assert (1, end) in places
    assert (0, end) not in places


@pytest.mark.parametrize("count", [0, -1, MOST_ALTERNATIVES + 1])
def test_a_number_that_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(EngineError, match="best_of") as refused:
        next(core().start(replace(ALONE, best_of=count)))
    assert (refused.value.kind, bool(refused.value.remedy)) == ("bad_request", True)
