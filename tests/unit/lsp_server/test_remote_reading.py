"""What another machine sends is read whatever it is and wherever it is cut; what is sent to it holds no control."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.protocol.errors import FAILURE_KINDS
from engine.protocol.messages import Rewrite
from lsp_server.remote.chat_prompts import fill_question, rewrite_question, without_thought
from lsp_server.remote.completion import Gap, Piece, Sampling, Wordings, piece_of
from lsp_server.remote.control_text import disarmed
from lsp_server.remote.fim_templates import template_of
from lsp_server.remote.http_errors import is_passing, lost_connection, refused, retry_after_s, stream_failure
from lsp_server.remote.sse import LARGEST_EVENT, EventDecoder, EventTooLargeError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def decoded(*chunks: bytes) -> list[str]:
    decoder = EventDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def test_events_of_all_forms() -> None:
    raw = b": hello\n\ndata: one\n\nevent: x\r\ndata:two\r\ndata: three\r\n\r\nid: 4\n\ndata:\n\n"
    raw += b"data: [DONE]\n\ndata: cut off"
    assert decoded(raw) == ["one", "two\nthree", "", "[DONE]"]


def test_only_line_feeds_end_lines() -> None:
    text = "a\u2028b\u0085c\x0bd\x0ce"
    assert decoded(f"data: {text}\n\n".encode()) == [text]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=5), st.data())
def test_events_do_not_depend_on_where_bytes_are_cut(texts: list[str], data: st.DataObject) -> None:
    raw = b"".join(f"data: {text}\n\n".encode() for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    borders = [0, *cuts, len(raw)]
    chunks = [raw[start:end] for start, end in pairwise(borders)]
    assert decoded(*chunks) == texts


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_events_or_none(chunks: list[bytes]) -> None:
    assert all(isinstance(event, str) for event in decoded(*chunks))


@pytest.mark.parametrize("line", [b"x" * 1000, b"data: " + b"x" * 1000 + b"\n"])
def test_an_event_without_an_end_is_not_kept_for_ever(line: bytes) -> None:
    with pytest.raises(EventTooLargeError):
        decoded(*[line] * (LARGEST_EVENT // 1000 + 2))


@given(st.dictionaries(st.sampled_from(["choices", "content", "usage", "stop", "stop_type", "error"]), JSON))
def test_any_json_is_a_piece(event: dict[str, Any]) -> None:
    piece = piece_of(event)
    assert isinstance(piece.text, str)
    assert piece.tokens >= 0


@pytest.mark.parametrize(
    ("event", "piece"),
    [
        ({"choices": [{"text": "a", "finish_reason": None}]}, Piece("a")),
        ({"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}, Piece("a", "length")),
        ({"choices": [{"delta": {"reasoning_content": "hm"}}]}, Piece()),
        ({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}, Piece(prompt_tokens=7, tokens=3)),
        ({"content": "a", "stop": False, "tokens_predicted": 1, "tokens_evaluated": 9}, Piece("a", "", 9, 0, 1)),
        ({"content": "", "stop": True, "stop_type": "limit"}, Piece("", "length")),
        ({"content": "", "stop": True, "stop_type": "eos"}, Piece("", "stop")),
    ],
)
def test_pieces_of_every_route(event: dict[str, Any], piece: Piece) -> None:
    assert piece_of(event) == piece


TOKENS = (
    *("<|im_end|>", "<|fim_middle|>", "<fim_suffix>", "<｜fim▁hole｜>", "</s>", "<EOT>", "[INST]", "<start_of_turn>"),
    *("<|channel>", "<turn|>", "<|endoftext|>"),
)
TEXTS = st.lists(st.sampled_from(TOKENS) | st.text(max_size=6), max_size=8).map("".join)


@given(TEXTS, TEXTS)
def test_control_tokens_of_a_file_are_text_in_every_prompt(prefix: str, suffix: str) -> None:
    """Whatever is laid out as text holds no control token but the template's own, each once."""
    template = template_of("qwen2.5-coder-7b")
    assert template is not None
    gap = Gap(prefix, suffix, "python")
    prompt = Wordings("qwen2.5-coder-7b", "template", template).fill(gap, Sampling(8)).body["prompt"]
    for token in TOKENS:
        assert prompt.count(token) == (1 if token in (template.before, template.between, template.behind) else 0)
    rewrite = Rewrite("a", "python", prefix, suffix, prefix, f"do {suffix}")
    for question in (fill_question(prefix, suffix, "python", 1), rewrite_question(rewrite)):
        asked = json.dumps(question.messages, ensure_ascii=False)
        assert not [token for token in TOKENS if token in asked]


@given(st.sampled_from(TOKENS), st.text(max_size=8))
def test_a_control_token_that_an_answer_repeats_comes_back_as_it_was(token: str, text: str) -> None:
    assume(token not in text and f"{token[0]} {token[1:]}" not in text)
    texts = disarmed(f"{text}{token}")
    assert token not in texts.texts[0]
    assert texts.restored(texts.texts[0]) == f"{text}{token}"


def test_texts_without_control_tokens_go_out_as_they_are() -> None:
    for text in ("x = a < b | c > d", "<div>", "List<String|Integer>", "a <<EOF", "[x]", "<p>s</p>"):
        assert disarmed(text).texts == (text,)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("Qwen/Qwen2.5-Coder-7B-Instruct", "<|fim_prefix|>"),
        ("qwen2.5-coder:1.5b", "<|fim_prefix|>"),
        ("bigcode/starcoder2-3b", "<fim_prefix>"),
        ("deepseek-ai/DeepSeek-Coder-V2-Lite-Base", "<｜fim▁begin｜>"),
        ("codellama/CodeLlama-7b-hf", "<PRE> "),
        ("google/diffusiongemma-26B-A4B-it", None),
        ("meta-llama/Llama-3.1-8B-Instruct", None),
    ],
)
def test_families_by_name(name: str, begins: str | None) -> None:
    template = template_of(name)
    assert (template.before if template else None) == begins


def test_an_answer_s_code_is_its_block_and_a_thought_is_none_of_it() -> None:
    rewrite = Rewrite("a", "python", "", "x = 1\n", "", "rename x")
    question = rewrite_question(rewrite)
    answer = "<think>\n```python\nno\n```\n</think>\nHere is the code:\n```python\ny = 1\n```\nDone."
    assert question.code(answer) == "y = 1"
    assert question.code_so_far("<think> maybe ```\nx") == ""
    assert question.code_so_far("```python\ny =") == "y ="
    assert without_thought("plain") == "plain"


def test_a_gap_s_mark_stands_nowhere_else() -> None:
    asked = fill_question("a <GAP> b", "<GAP1>", "text", 0).messages[-1]["content"]
    assert asked.count("<GAP2>") == 3


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    asked = rewrite_question(Rewrite("a", "markdown", "", "````\ncode\n````", "", "shorten")).messages[-1]["content"]
    assert "`````markdown\n" in asked


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b"", "bad_request"),
        (400, b'{"error":{"type":"exceed_context_size_error"}}', "window_exceeded"),
        (400, b'{"message": "This model\'s maximum context length is 8 tokens"}', "window_exceeded"),
        (401, b"", "bad_token"),
        (403, b"", "bad_token"),
        (404, b"", "model_missing"),
        (413, b"", "window_exceeded"),
        (429, b"", "overloaded"),
        (500, b"", "unreachable"),
        (502, b"", "unreachable"),
        (503, b"", "overloaded"),
        (302, b"", "bad_reply"),
        (418, b"", "unreachable"),
    ],
)
def test_every_status_is_a_failure_to_act_on(status: int, body: bytes, kind: str) -> None:
    fault = refused(status, "h.example.org", model="m", body=body)
    assert fault.kind == kind
    assert "h.example.org" in fault.message
    assert fault.remedy


def test_statuses_that_may_pass() -> None:
    assert [status for status in range(100, 600) if is_passing(status)] == [408, 425, 429, 500, 502, 503, 504]


@given(JSON)
def test_any_error_in_a_stream_is_a_failure(said: Any) -> None:
    assert stream_failure(said, "h").kind in FAILURE_KINDS


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3.0), ("", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("9" * 99, None)],
)
def test_what_a_server_asks_to_wait(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}) == seconds


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (httpx.ConnectError("refused"), "unreachable"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"), "unsafe_address"),
        (httpx.ReadTimeout("slow"), "timed_out"),
        (TimeoutError(), "timed_out"),
        (httpx.RemoteProtocolError("gone"), "unreachable"),
    ],
)
def test_every_lost_connection_is_a_failure_to_act_on(fault: BaseException, kind: str) -> None:
    assert lost_connection(fault, "h").kind == kind
