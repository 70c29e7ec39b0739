"""Other texts for one gap, on a tiny model: different, ranked, the first one untouched, and never beyond the limits."""

from __future__ import annotations

import pytest
import torch

from engine.alternatives import TRUNK_TOKENS, Fork, likeliest_forks
from engine.core import EngineCore
from engine.diffusion.denoise import allowed_ids
from engine.diffusion.verify import PassLayout, build_rows
from engine.lead import settle_lead
from engine.models.hybrid import HybridDenoiser
from engine.models.tiny import tiny_denoiser
from engine.prompts import fill_prompt
from engine.protocol.errors import EngineError
from engine.protocol.messages import MOST_ALTERNATIVES, Done, Fill, Found
from engine.quality import Gates
from tests.fakes.clock import Clock

LONE = Fill("1", "python", "def f(x):\n    return ", "\n\nprint(f(2))\n", max_tokens=12)
SEVERAL = Fill("2", "python", LONE.prefix, LONE.suffix, max_tokens=12, alternatives=4)


def drive(engine: EngineCore, request: Fill) -> tuple[Done, int]:
    run, steps = engine.start(request), 0
    while True:
        try:
            next(run)
        except StopIteration as finished:
            return finished.value, steps
        steps += 1


def core(seed: int = 4, step: float = 0.0) -> EngineCore:
    return EngineCore(tiny_denoiser(seed=seed), clock=Clock(step), threads=1, gates=Gates.open())


def greedy_continuation(model: HybridDenoiser, request: Fill, head: bytes) -> bytes:
    """Greedy decoding of one token a pass behind `head`, the reference a branch must equal."""
    prompt = fill_prompt(request, model.tokenizer, model.facts.special)
    context = model.context_for(prompt.ids)
    model.encode(context, prompt.ids[context.length :])
    prompt = settle_lead(model, context, prompt)
    ids = [prompt.gap.pending, *head]
    rows = build_rows(PassLayout(ids[0], tuple(ids[1:])), prompt.rows, model.facts.mask_id, adapted=True)
    logits = model.step(context, rows)[-1]
    while True:
        token = int(logits[: allowed_ids(model)].argmax())
        if token in model.facts.special.special:
            break
        ids.append(token)
        if len(ids) > request.max_tokens:
            break
        rows = build_rows(PassLayout(token), prompt.rows + len(ids) - 1, model.facts.mask_id, adapted=True)
        logits = model.step(context, rows)[0]
    model.release(context)
    return bytes(ids[1:])


@pytest.mark.parametrize("seed", range(6))
def test_the_first_text_is_the_one_that_comes_alone(seed: int) -> None:
    alone, _ = drive(core(seed), LONE)
    done, _ = drive(core(seed), SEVERAL)
    assert done.text == alone.text
    assert alone.alternatives == ()
    assert (done.stats.passes, done.stats.tokens, done.stats.stop) == (
        alone.stats.passes,
        alone.stats.tokens,
        alone.stats.stop,
    )


@pytest.mark.parametrize("seed", range(6))
def test_alternatives_are_as_many_as_asked_for_and_all_different(seed: int) -> None:
    done, _ = drive(core(seed), SEVERAL)
    texts = [text.strip() for text in (done.text, *done.alternatives)]
    assert len(done.alternatives) == 3
    assert len(set(texts)) == len(texts)
    assert all(text for text in texts[1:])


@pytest.mark.parametrize("seed", range(6))
def test_every_alternative_is_greedy_behind_its_fork(seed: int) -> None:
    model = tiny_denoiser(seed=seed)
    done, _ = drive(EngineCore(model, clock=Clock(), threads=1, gates=Gates.open()), SEVERAL)
    first = done.text.encode()
    for text in done.alternatives:
        data = text.encode()
        depth = next(i for i in range(len(data)) if data[: i + 1] != first[: i + 1])
        assert depth <= TRUNK_TOKENS
        # The token behind the same start leads to this text by itself; its last character may be cut inside.
        assert greedy_continuation(model, LONE, data[: depth + 1]).startswith(data)


def test_the_likeliest_fork_comes_first_and_ends_are_none() -> None:
    model = tiny_denoiser()
    count = allowed_ids(model)
    logits = torch.full((2, count), -20.0)
    logits[0, [97, 98, 99]] = torch.tensor([4.0, 3.0, 1.0])
    logits[1, [97, 98, 200]] = torch.tensor([4.0, 2.0, 9.0])
    logits[:, min(model.facts.special.end)] = 8.0
    forks = likeliest_forks(model, (97,), logits, 3)
    places = [(fork.depth, fork.token) for fork in forks]
    # Byte 200 begins a character that one token alone cannot end; 99 at the first place is the third likeliest.
    assert places[0] == (0, 98)
    assert (1, 200) not in places
    assert all(fork.token not in model.facts.special.special for fork in forks)
    assert [fork.score for fork in forks] == sorted((fork.score for fork in forks), reverse=True)
    assert isinstance(forks[0], Fork)


def test_texts_are_told_as_they_are_found_and_stay() -> None:
    run, told = core().start(SEVERAL), []
    while True:
        try:
            news = next(run)
        except StopIteration as finished:
            done: Done = finished.value
            break
        if isinstance(news, Found):
            told.append(news)
    assert told[0] == Found(SEVERAL.id, done.text)
    assert len(told) > 1
    assert [news.alternatives for news in told] == [done.alternatives[:number] for number in range(len(told))]
    assert all(news.text == done.text for news in told)


def test_equal_requests_get_equal_lists() -> None:
    engine = core()
    assert drive(engine, SEVERAL)[0].alternatives == drive(engine, SEVERAL)[0].alternatives


def test_one_line_is_one_line_in_every_alternative() -> None:
    done, _ = drive(core(), Fill("3", "python", "a = ", "\n", max_tokens=24, max_lines=1, alternatives=6))
    assert done.alternatives
    assert all("\n" not in text.strip() for text in done.alternatives)


def test_abandoned_between_alternatives_the_prompt_is_still_resident() -> None:
    engine = core()
    steps_alone = drive(engine, LONE)[1]
    run = engine.start(SEVERAL)
    for _ in range(steps_alone + 3):
        next(run)
    run.close()
    again, _ = drive(engine, LONE)
    assert again.stats.cached_tokens == again.stats.prompt_tokens - len("return ")
    assert again.text == drive(core(), LONE)[0].text


def test_at_the_deadline_there_are_fewer_and_none_is_cut() -> None:
    full, _ = drive(core(), Fill("4", "python", "x", "y", max_tokens=12, alternatives=4))
    limits = range(40, 400, 40)
    counts = []
    for limit in limits:
        request = Fill("4", "python", "x", "y", max_tokens=12, alternatives=4, deadline_ms=limit)
        done, _ = drive(core(step=0.01), request)
        assert set(done.alternatives) <= set(full.alternatives)
        counts.append(len(done.alternatives))
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] > 0


@pytest.mark.parametrize("count", [0, -1, MOST_ALTERNATIVES + 1])
def test_a_number_that_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(EngineError, match="alternatives") as refused:
        next(core().start(Fill("5", "python", "a", "b", alternatives=count)))
    assert (refused.value.kind, bool(refused.value.remedy)) == ("bad_request", True)
