"""Rules for text decoded from the left: kept whatever was drafted, reviewed at the end, failed by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from string import ascii_letters
from typing import TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import EngineCore
from engine.diffusion.constraints import Vocabulary
from engine.diffusion.constraints.causal import CausalRules, Check
from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.denoise import Denoised, Gap
from engine.diffusion.obeying import denoise_obeying
from engine.diffusion.stopping import Limits
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.models.tiny import tiny_denoiser
from engine.protocol.errors import EngineError
from engine.protocol.messages import Constraints, Fill, FurtherHole
from engine.quality import Gates
from engine.tokenizer import ByteTokenizer
from tests.fakes.clock import Clock
from tests.fakes.driving import drive, result_of

SPECIAL = ByteTokenizer().special_ids().special
WORDS = Vocabulary.read(ByteTokenizer(), ByteTokenizer.vocab_size, SPECIAL, SPECIAL)
LETTERS = "abcdefgh \n"
seeds = st.integers(0, 40)


Result = TypeVar("Result")


def outcome(work: Callable[[], Result]) -> Result | EngineError:
    """The result, or the failure by name."""
    try:
        return work()
    except EngineError as failure:
        return failure


def denoised(rules: CausalRules, seed: int, config: VerifyConfig, *, tokens: int = 24, warm: bytes = b"") -> Denoised:
    model = tiny_denoiser(seed=seed)
    prompt = tuple(b"def f(x):\n    return ")
    context = model.context_for(prompt)
    model.encode(context, prompt)
    gap = Gap(model.facts.special.fim_middle, True, tuple(warm), (prompt,))
    return result_of(denoise_obeying(model, context, gap, Limits(tokens), config, lambda: False, rules))


@settings(max_examples=25)
@given(seeds, st.integers(0, 3), st.integers(0, 12), st.sampled_from([b"", b"abc\nab", b"cab" * 4]))
def test_limits_and_characters_hold_and_drafts_change_nothing(seed: int, lines: int, most: int, warm: bytes) -> None:
    def rules() -> CausalRules:
        return CausalRules(WORDS, WORDS.writing_only(LETTERS), max_lines=lines, max_characters=most)

    drafted = denoised(rules(), seed, VerifyConfig(costs=CostCurve.linear(0.0)), warm=warm)
    plain = denoised(rules(), seed, CAUSAL)
    assert drafted.settled == plain.settled
    assert set(plain.text) <= set(LETTERS)
    assert not lines or plain.text.count("\n") < lines
    assert not most or len(plain.text) <= most


def test_a_limit_is_used_up_and_not_stopped_short_of() -> None:
    letters = WORDS.writing_only(ascii_letters)
    texts = [denoised(CausalRules(WORDS, letters, max_characters=8), seed, CAUSAL) for seed in range(5)]
    assert any(len(result.text) == 8 for result in texts)
    assert all(result.stop == "end" for result in texts)


def has_even_length(text: str) -> Sequence[tuple[int, int]]:
    return [(0, len(text))] if len(text) % 2 else []


@settings(max_examples=25)
@given(seeds)
def test_what_is_let_through_passes_the_check(seed: int) -> None:
    rules = CausalRules(
        WORDS, WORDS.writing_only("ab"), max_characters=5, checks=[Check(has_even_length, "is even")], before="(("
    )
    result = outcome(lambda: denoised(rules, seed, VerifyConfig()))
    if isinstance(result, EngineError):
        assert (result.kind, "is even" in result.message) == ("unsatisfied", True)
        return
    assert len(result.text) % 2 == 0
    assert result.tokens <= result.passes * 33


def test_only_the_faulty_stretch_is_taken_up_again() -> None:
    letters = WORDS.writing_only(ascii_letters)
    first = denoised(CausalRules(WORDS, letters, max_characters=8), 3, CAUSAL)
    wrong = first.text[5]

    def faults(text: str) -> Sequence[tuple[int, int]]:
        return [(5, 6)] if text[5:6] == wrong else []

    rules = CausalRules(WORDS, letters, max_characters=8, checks=[Check(faults, "differs")])
    mended = denoised(rules, 3, CAUSAL)
    assert mended.text[:5] == first.text[:5]
    assert mended.text[5:6] != wrong
    assert mended.passes > first.passes


def test_a_check_that_nothing_passes_fails_by_name_and_with_a_remedy() -> None:
    rules = CausalRules(
        WORDS, WORDS.writing_only("ab"), max_characters=4, checks=[Check(lambda text: [(0, len(text))], "is good")]
    )
    with pytest.raises(EngineError, match=r"is good in \d corrections") as failure:
        denoised(rules, 1, CAUSAL)
    assert (failure.value.kind, bool(failure.value.remedy)) == ("unsatisfied", True)


def test_where_no_attempt_passes_the_beginning_that_does_is_the_text() -> None:
    letters = WORDS.writing_only(ascii_letters)
    first = denoised(CausalRules(WORDS, letters, max_characters=8), 3, CAUSAL)
    assert len(first.text) > 3

    def is_long(text: str) -> Sequence[tuple[int, int]]:
        return [(3, len(text))] if len(text) > 3 else []

    rules = CausalRules(WORDS, letters, max_characters=8, checks=[Check(is_long, "is short")], tries=0)
    kept = denoised(rules, 3, CAUSAL)
    assert kept.text == first.text[:3]
    assert kept.passes == first.passes


def test_rows_of_masks_and_given_logits_stay_as_they_are() -> None:
    logits = torch.randn(4, ByteTokenizer.vocab_size, generator=torch.Generator().manual_seed(2))
    before = logits.clone()
    rules = CausalRules(WORDS, WORDS.writing_only("a"), max_characters=2)
    constrained = rules.constrain((97,), (97,), logits)
    assert torch.equal(logits, before)
    assert torch.equal(constrained[2:], before[2:])
    # One character is left for the first row; for the second there is none, and only an end can come.
    assert [int(token) for token in constrained[0].isfinite().nonzero().flatten()] == [97, *sorted(SPECIAL)]
    assert [int(token) for token in constrained[1].isfinite().nonzero().flatten()] == sorted(SPECIAL)


def served(request: Fill, seed: int = 4) -> str:
    return drive(EngineCore(tiny_denoiser(seed=seed), clock=Clock(), threads=1, gates=Gates.open()), request)[0].text


def test_a_value_of_a_json_document_follows_its_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 20}}}
    rules = Constraints(max_characters=3, allowed="0123456789 .", json_schema=json.dumps(schema))
    request = Fill("1", "json", '{"n": ', "}", max_tokens=8, constraints=rules)
    found = 0
    for seed in range(6):
        text = outcome(partial(served, request, seed))
        if isinstance(text, EngineError):
            assert text.kind == "unsatisfied"
            continue
        found += 1
        value = json.loads(f'{{"n": {text}}}')["n"]
        assert isinstance(value, int | float)
        assert value >= 20
        assert value == int(value)
    assert found


def test_the_schema_true_allows_any_document() -> None:
    rules = Constraints(max_characters=1, allowed="12", json_schema="true")
    assert served(Fill("1", "json", "[", "1]", max_tokens=8, constraints=rules), 1) in {"", "1", "2"}


def test_of_several_holes_each_value_is_judged_when_it_is_made() -> None:
    schema = {"properties": {"n": {"type": "integer", "minimum": 20}, "m": {"type": "integer"}}}
    rules = Constraints(max_characters=3, allowed="0123456789 .", json_schema=json.dumps(schema))
    request = Fill("1", "json", '{"n": ', "}", max_tokens=8, constraints=rules, further=(FurtherHole(', "m": '),))
    found = 0
    for seed in range(6):
        core = EngineCore(tiny_denoiser(seed=seed), clock=Clock(), threads=1, gates=Gates.open())
        driven = outcome(partial(drive, core, request))
        if isinstance(driven, EngineError):
            assert driven.kind == "unsatisfied"
            continue
        done = driven[0]
        assert all(hole.stop == "end" for hole in done.holes)
        found += 1
        value = json.loads(f'{{"n": {done.text}, "m": {done.further[0].text}}}')
        assert value["n"] >= 20
    assert found


def test_a_text_must_parse_with_what_stands_around_it() -> None:
    rules = Constraints(max_characters=4, allowed="ab()", must_parse=True)
    found = 0
    for seed in range(6):
        request = Fill("1", "python", "x = (", ")\n", max_tokens=8, constraints=rules)
        text = outcome(partial(served, request, seed))
        if isinstance(text, EngineError):
            assert text.kind == "unsatisfied"
            continue
        found += 1
        compile(f"x = ({text})\n", "text", "exec")
    assert found


def test_a_text_that_was_broken_before_may_stay_so() -> None:
    rules = Constraints(max_characters=2, allowed="a", must_parse=True)
    assert set(served(Fill("1", "python", "def (:\nx = a", "\n", max_tokens=8, constraints=rules))) <= {"a"}


def test_rules_hold_in_every_hole() -> None:
    rules = Constraints(max_characters=3, allowed="abc")
    request = Fill("1", "python", "x = ", "\n", max_tokens=8, further=(FurtherHole("\ny = "),), constraints=rules)
    done, _, _ = drive(EngineCore(tiny_denoiser(seed=2), clock=Clock(), threads=1, gates=Gates.open()), request)
    assert all(set(hole.text) <= set("abc") and len(hole.text) <= 3 for hole in done.holes)


@pytest.mark.parametrize(
    ("rules", "language", "words"),
    [
        (Constraints(max_lines=-1), "python", "max_lines"),
        (Constraints(max_characters=-1), "python", "max_characters"),
        (Constraints(must_parse=True), "nonsense", "no grammar of 'nonsense'"),
        (Constraints(json_schema="{"), "json", "no JSON"),
        (Constraints(json_schema="[]"), "json", "no JSON object"),
        (Constraints(json_schema="false"), "json", "allows no document"),
        (Constraints(json_schema="[" * 100_000), "json", "no JSON"),
        (Constraints(json_schema='{"$ref": "#"}'), "json", "it refers to itself without end"),
        (Constraints(json_schema='{"type": "nonsense"}'), "json", "cannot be used"),
    ],
)
def test_rules_that_make_no_sense_are_refused_with_a_remedy(rules: Constraints, language: str, words: str) -> None:
    core = EngineCore(tiny_denoiser(seed=4), threads=1, gates=Gates.open())
    with pytest.raises(EngineError, match=words) as refused:
        next(core.start(Fill("1", language, "a", "b", constraints=rules)))
    assert (refused.value.kind, bool(refused.value.remedy)) == ("bad_request", True)


def test_constraints_that_ask_for_nothing_change_nothing() -> None:
    request = Fill("1", "python", "a = ", "\n", max_tokens=12)
    assert served(Fill("1", "python", "a = ", "\n", max_tokens=12, constraints=Constraints())) == served(request)
