"""Requests laid out as canvases: what is known, where the gap is, what is cut and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from engine.canvas_serving.checks import require_room, require_round_trip
from engine.canvas_serving.prompt_style import Chat, PromptStyle, Turn, llama3_chat, qwen_chat, seed_chat
from engine.canvas_serving.prompts import ISLAND_TOKENS, CanvasPrompt, fill_canvas, rewrite_canvas
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known, Part
from engine.prompts import PREFIX_TOKENS, SUFFIX_TOKENS
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, Rewrite
from engine.tokenizer import ByteTokenizer

TOKENIZER = ByteTokenizer()
START, STOP, OPEN, CLOSE = 300, 301, 302, 303
FACTS = CanvasFacts(
    name="scripted",
    family="masked",
    device="cpu",
    precision="fp32",
    vocab_size=310,
    window_tokens=4096,
    noise="mask",
    mask_id=309,
    end_ids=frozenset({308}),
    forbidden=torch.zeros(310, dtype=torch.bool),
)
BLIND = replace(FACTS, right_context=False)
CHAT = Chat(Turn((OPEN, 1), (CLOSE,)), Turn((OPEN, 2), (CLOSE,)), Turn((OPEN, 3), (CLOSE,)))
FRAMED = PromptStyle("framed", (START,), (STOP,))
ANSWER = PromptStyle("answer", chat=CHAT)
QUOTED = PromptStyle("quoted", chat=CHAT)
FILL = Fill("1", "python", "def f():\n    return ", "\n\nprint(f())\n", max_tokens=32)
EDIT = Rewrite("2", "python", "", "    x = 1\n    y = 2\n", "", "Add one", max_tokens=64)


def text(ids: Sequence[int]) -> str:
    return TOKENIZER.decode_bytes(ids).decode()


def test_raw_text_stands_on_both_sides_and_nothing_else() -> None:
    job = fill_canvas(FILL, TOKENIZER, FACTS, PromptStyle()).job
    assert text(job.known.prefix) == FILL.prefix
    assert text(job.known.suffix) == FILL.suffix
    (hole,) = job.parts
    assert (hole.is_hole, hole.warm, hole.length) == (True, (), 0)


def test_lengths_are_tried_where_text_follows_and_left_to_the_end_token_elsewhere() -> None:
    (hole,) = fill_canvas(FILL, TOKENIZER, FACTS, PromptStyle()).job.parts
    assert len(hole.candidates) > 1
    assert all(1 <= length <= 32 for length in hole.candidates)
    (open_ended,) = fill_canvas(replace(FILL, suffix=""), TOKENIZER, FACTS, PromptStyle()).job.parts
    assert open_ended.candidates == ()


def test_one_line_at_the_end_of_a_text_gets_the_places_of_a_line() -> None:
    one = replace(FILL, suffix="", max_lines=1, max_tokens=200, prefix="x" * 59 + "\ny = ")
    assert fill_canvas(one, TOKENIZER, FACTS, PromptStyle()).job.parts[0].length == 2 * 60
    assert fill_canvas(replace(one, prefix=""), TOKENIZER, FACTS, PromptStyle()).job.parts[0].length == 24
    assert fill_canvas(replace(one, max_tokens=9), TOKENIZER, FACTS, PromptStyle()).job.parts[0].length == 9
    assert fill_canvas(replace(one, max_lines=0), TOKENIZER, FACTS, PromptStyle()).job.parts[0].length == 0
    for facts in (replace(FACTS, block=4), replace(FACTS, expand_id=3), replace(FACTS, canvas_length=64)):
        assert fill_canvas(one, TOKENIZER, facts, PromptStyle()).job.parts[0].length == 0


@pytest.mark.parametrize("facts", [FACTS, replace(FACTS, block=4), replace(FACTS, canvas_length=64)])
def test_a_present_text_at_the_end_may_grow(facts: CanvasFacts) -> None:
    goes_on = facts is not FACTS
    fill = fill_canvas(
        replace(FILL, suffix="", draft="y" * 10, max_tokens=99), TOKENIZER, facts, PromptStyle()
    ).job.parts[0]
    assert fill.length == (0 if goes_on else 42)
    rewrite = rewrite_canvas(EDIT, TOKENIZER, facts, PromptStyle()).job.parts[0]
    assert rewrite.length == (0 if goes_on else len(rewrite.warm) + 32)


def test_framed_text_has_its_marks_at_the_ends_of_the_text() -> None:
    known = fill_canvas(FILL, TOKENIZER, FACTS, FRAMED).job.known
    assert known.prefix[0] == START
    assert known.suffix[-1] == STOP
    assert text(known.prefix[1:] + known.suffix[:-1]) == FILL.prefix + FILL.suffix


def test_an_answer_repeats_the_code_around_the_gap() -> None:
    known = fill_canvas(FILL, TOKENIZER, FACTS, ANSWER).job.known
    before, behind = text(known.prefix), text(known.suffix)
    assert before.endswith(f"```python\n{FILL.prefix}")
    assert behind == f"{FILL.suffix}\n```"
    assert before.count(FILL.prefix) == 1
    assert known.prefix.count(OPEN) == 3
    assert known.suffix[-1] == CLOSE


def test_a_family_that_sees_nothing_to_the_right_gets_an_island_and_a_quotation() -> None:
    job = fill_canvas(replace(FILL, suffix="x" * 90), TOKENIZER, BLIND, QUOTED).job
    assert job.known.suffix == ()
    assert [part.is_hole for part in job.parts] == [True, False]
    assert text(job.parts[1].ids) == "x" * ISLAND_TOKENS
    assert "x" * 90 in text(job.known.prefix)
    assert text(job.known.prefix).endswith(f"```python\n{FILL.prefix}")


def test_while_somebody_types_only_what_was_typed_is_new() -> None:
    before = fill_canvas(FILL, TOKENIZER, BLIND, QUOTED).job.known.prefix
    after = fill_canvas(replace(FILL, prefix=f"{FILL.prefix}x"), TOKENIZER, BLIND, QUOTED).job.known.prefix
    assert after == (*before, ord("x"))


def test_where_nothing_follows_there_is_no_island_and_the_block_is_closed_by_the_model() -> None:
    prompt = fill_canvas(replace(FILL, suffix=""), TOKENIZER, BLIND, QUOTED)
    assert (len(prompt.job.parts), prompt.limits.stop_text) == (1, "\n```")
    assert fill_canvas(FILL, TOKENIZER, BLIND, QUOTED).limits.stop_text == ""


def test_without_turns_a_blind_family_still_gets_its_island() -> None:
    job = fill_canvas(FILL, TOKENIZER, BLIND, PromptStyle("quoted")).job
    assert (text(job.known.prefix), text(job.parts[1].ids)) == (FILL.prefix, FILL.suffix)


def test_a_fence_in_the_code_cannot_close_the_question() -> None:
    known = fill_canvas(replace(FILL, prefix="a = '```'\n"), TOKENIZER, FACTS, ANSWER).job.known
    assert text(known.suffix).endswith("\n````")


def test_the_present_text_is_the_warm_start() -> None:
    (hole,) = fill_canvas(replace(FILL, draft="x + 1"), TOKENIZER, FACTS, PromptStyle()).job.parts
    assert text(hole.warm) == "x + 1"
    assert (hole.reopen, hole.length) == (None, 0)


@pytest.mark.parametrize("style", [ANSWER, PromptStyle(), FRAMED])
def test_a_rewrite_starts_from_the_selection_without_its_margin(style: PromptStyle) -> None:
    prompt = rewrite_canvas(EDIT, TOKENIZER, FACTS, style)
    (hole,) = prompt.job.parts
    assert text(hole.warm) == "x = 1\ny = 2\n```"
    assert len(hole.warm) < hole.length <= prompt.limits.max_tokens
    assert "Instruction: Add one." in text(prompt.job.known.prefix)
    assert text(prompt.job.known.prefix).endswith("```python\n")
    assert prompt.job.known.suffix == ()
    assert prompt.limits.stop_text == "\n```"


def test_a_family_without_a_system_turn_is_told_in_the_user_s() -> None:
    chat = replace(CHAT, system=None, start=(START,))
    known = rewrite_canvas(EDIT, TOKENIZER, FACTS, PromptStyle("answer", chat=chat)).job.known
    assert known.prefix[0] == START
    assert known.prefix.count(OPEN) == 2
    assert "You edit code." in text(known.prefix)


@pytest.mark.parametrize(
    ("style", "window"),
    [*((style, window) for style in (PromptStyle(), FRAMED) for window in (48, 200, 700, 2048)), (ANSWER, 1000)],
)
def test_context_is_cut_to_the_window_where_it_is_farthest_from_the_gap(style: PromptStyle, window: int) -> None:
    question = 400
    facts = replace(FACTS, window_tokens=window)
    request = replace(FILL, prefix="p" * 2000 + "<", suffix=">" + "s" * 2000)
    prompt = fill_canvas(request, TOKENIZER, facts, style)
    known = prompt.job.known
    assert prompt.prompt_tokens + prompt.limits.max_tokens <= window
    assert text(known.prefix).endswith("<")
    assert text(known.suffix).startswith(">")
    assert len(known.prefix) + len(known.suffix) <= PREFIX_TOKENS + SUFFIX_TOKENS + question
    assert prompt.limits.max_tokens >= min(32, window // 4)


def test_an_empty_file_is_a_gap_like_any_other() -> None:
    prompt = fill_canvas(Fill("1", "python", "", "", max_tokens=16), TOKENIZER, FACTS, PromptStyle())
    assert (prompt.job.known, prompt.limits.max_tokens) == (Known(()), 16)


def lay_out(request: Fill | Rewrite, tokenizer: ByteTokenizer, facts: CanvasFacts, style: PromptStyle) -> CanvasPrompt:
    if isinstance(request, Fill):
        return fill_canvas(request, tokenizer, facts, style)
    return rewrite_canvas(request, tokenizer, facts, style)


def refused(request: Fill | Rewrite, facts: CanvasFacts = FACTS, style: PromptStyle | None = None) -> EngineError:
    with pytest.raises(EngineError) as caught:
        lay_out(request, TOKENIZER, facts, style or PromptStyle())
    assert caught.value.remedy
    return caught.value


def test_a_selection_longer_than_the_answer_may_be_is_refused() -> None:
    error = refused(replace(FILL, draft="x" * 33))
    assert (error.kind, "33 tokens, and 32" in error.message) == ("window_exceeded", True)
    assert refused(replace(EDIT, selection="x = 1\n" * 20)).kind == "window_exceeded"


def test_a_selection_that_leaves_no_window_is_refused() -> None:
    error = refused(replace(FILL, draft="x" * 90, max_tokens=128), replace(FACTS, window_tokens=80))
    assert (error.kind, error.remedy) == ("window_exceeded", "select less text")


def test_a_rewrite_whose_question_fills_the_window_is_refused() -> None:
    known = rewrite_canvas(EDIT, TOKENIZER, FACTS, ANSWER).job.known
    at_the_limit = len(known.prefix) + len(known.suffix)
    error = refused(EDIT, replace(FACTS, window_tokens=at_the_limit), ANSWER)
    assert (error.kind, "around the gap" in error.message) == ("window_exceeded", True)


class Lossy(ByteTokenizer):
    """A tokenizer that normalises: what goes in does not come out."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.replace("é", "e"))


@pytest.mark.parametrize(
    "request_",
    [
        replace(FILL, prefix="é"),
        replace(FILL, suffix="é"),
        replace(FILL, draft="é"),
        replace(EDIT, selection="é"),
        replace(EDIT, instruction="é"),
    ],
)
def test_text_that_does_not_come_back_is_refused_and_not_guessed(request_: Fill | Rewrite) -> None:
    with pytest.raises(EngineError) as caught:
        lay_out(request_, Lossy(), FACTS, ANSWER)
    assert (caught.value.kind, "é" in caught.value.message) == ("round_trip", False)


def test_a_round_trip_gives_the_ids() -> None:
    assert require_round_trip("é", TOKENIZER) == list("é".encode())


HOLE = Part(is_hole=True)


@pytest.mark.parametrize(
    ("job", "kind", "words"),
    [
        (CanvasJob(Known((1,)), ()), "bad_request", "no hole"),
        (CanvasJob(Known((1,)), (Part(is_hole=False, ids=(1, 2)),)), "bad_request", "no hole"),
        (CanvasJob(Known((1,) * 100)), "window_exceeded", "window holds 100"),
        (CanvasJob(Known((1,) * 60, (2,) * 50)), "window_exceeded", "needs 110 tokens"),
        (CanvasJob(Known(()), (HOLE, Part(is_hole=False, ids=(1,) * 120))), "window_exceeded", "canvas of 64"),
        (CanvasJob(Known(()), (HOLE, Part(is_hole=False, ids=(1,) * 64))), "window_exceeded", "canvas of 64"),
        (CanvasJob(Known(()), (Part(is_hole=True, length=41),)), "window_exceeded", "41 tokens, and 40"),
        (CanvasJob(Known(()), (Part(is_hole=True, warm=(1,) * 41),)), "window_exceeded", "41 tokens, and 40"),
        (CanvasJob(Known((1,) * 99), (HOLE, Part(is_hole=False), HOLE)), "window_exceeded", "needs 99 tokens"),
    ],
)
def test_what_no_canvas_can_hold_is_refused_with_a_way_out(job: CanvasJob, kind: str, words: str) -> None:
    facts = replace(FACTS, window_tokens=100, canvas_length=64)
    with pytest.raises(EngineError, match=words) as caught:
        require_room(job, facts, 40)
    assert (caught.value.kind, bool(caught.value.remedy)) == (kind, True)


def test_the_budget_is_what_the_window_leaves() -> None:
    facts = replace(FACTS, window_tokens=100)
    assert require_room(CanvasJob(Known((1,) * 90)), facts, 40) == 10
    assert require_room(CanvasJob(Known((1,) * 10)), facts, 40) == 40


SPECIAL = {
    **{"<|im_start|>": 400, "<|im_end|>": 401, "<|start_header_id|>": 402, "<|end_header_id|>": 403},
    **{"<|eot_id|>": 404, "<|startoftext|>": 405, "<[begin▁of▁sentence]>": 406, "<[end▁of▁sentence]>": 407},
}


def spoken(ids: Sequence[int]) -> str:
    names = {index: name for name, index in SPECIAL.items()}
    return "".join(names.get(index) or chr(index) for index in ids)


def test_conversations_are_written_as_each_family_was_taught() -> None:
    qwen, llama3 = qwen_chat(SPECIAL, TOKENIZER.encode), llama3_chat(SPECIAL, TOKENIZER.encode)
    seed = seed_chat(SPECIAL, TOKENIZER.encode)
    assert qwen
    assert llama3
    assert seed
    assert spoken((*qwen.user.opens, *qwen.user.closes)) == "<|im_start|>user\n<|im_end|>\n"
    assert spoken((*qwen.assistant.opens, *qwen.assistant.closes)) == "<|im_start|>assistant\n<|im_end|>"
    header = "<|start_header_id|>user<|end_header_id|>\n\n"
    assert spoken((*llama3.start, *llama3.user.opens, *llama3.user.closes)) == f"<|startoftext|>{header}<|eot_id|>"
    assert spoken((*seed.user.opens, *seed.user.closes)) == "<[begin▁of▁sentence]>user\n<[end▁of▁sentence]>"


def test_without_its_tokens_there_is_no_conversation() -> None:
    assert all(make({}, TOKENIZER.encode) is None for make in (qwen_chat, llama3_chat, seed_chat))
