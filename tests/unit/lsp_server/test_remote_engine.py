"""An engine over HTTP against a scripted server: its states, its streams, and what it does when something is lost."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.protocol.errors import EngineError
from engine.protocol.messages import Constraints, Draft, Fill, FurtherHole, Rewrite
from lsp_server.engine_client import Patience
from lsp_server.engine_connection import EngineGone
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.openai import OpenAI
from lsp_server.remote.remote_engine import RemoteEngine, Retries
from tests.fakes.openai_server import Answer, Script, chat, completion, models, serving

pytestmark = pytest.mark.asyncio

PATIENCE_S = 20.0
QUICK = Patience(first_retry_s=0.01, longest_retry_s=0.05, lasting_retry_s=30.0)
AT_ONCE = Retries(first_s=0.01)
QWEN = "Qwen/Qwen2.5-Coder-7B"
FILL = Fill("a", "python", "def add(a, b):\n    return ", "\n", wants_drafts=True)
REWRITE = Rewrite("b", "python", "", "x = 1\n", "", "rename x to y", wants_drafts=True)

# A server that knows what a suffix is has read it: 50 tokens are more than the prompt alone.
KNOWS_SUFFIX = Answer(body={"choices": [{"text": "1"}], "usage": {"prompt_tokens": 50, "completion_tokens": 1}})
IGNORES_SUFFIX = Answer(body={"choices": [{"text": "1"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
REFUSES_SUFFIX = Answer(400, {"error": {"message": "suffix is not currently supported"}})


def vllm(*answers: Answer, model: str = QWEN) -> dict[str, list[Answer]]:
    """A vLLM with a model that fills gaps by a template."""
    return {"/v1/models": [models(model, max_model_len=8192)], "/v1/completions": [REFUSES_SUFFIX, *answers]}


def chatting(*answers: Answer) -> dict[str, list[Answer]]:
    """A server that only chats."""
    return {"/v1/models": [models("gemma", maker="google")], "/v1/chat/completions": list(answers)}


@asynccontextmanager
async def engine_at(script: Script, **more: Any) -> AsyncIterator[RemoteEngine]:
    choice = EngineChoice(f"{script.url}/v1", **more)
    engine = RemoteEngine(choice, OpenAI(), patience=QUICK, retries=AT_ONCE)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield engine
    finally:
        await engine.close()


async def until(engine: RemoteEngine, state: str) -> None:
    reached = asyncio.Event()
    engine.on_state(lambda new, _: reached.set() if new == state else None)
    engine.start()
    if engine.state != state:
        await reached.wait()


async def test_before_anything_it_is_off_and_nobody_is_asked() -> None:
    async with serving(vllm()) as script, engine_at(script) as engine:
        assert (engine.state, engine.facts, engine.failure) == ("off", None, None)
        with pytest.raises(EngineGone):
            await engine.status()
        assert script.asked == []


async def test_greeted_it_says_what_it_is() -> None:
    async with serving(vllm()) as script, engine_at(script) as engine:
        await until(engine, "ready")
        facts = engine.facts
        assert facts is not None
        assert (facts.model, facts.window_tokens, facts.family) == ("Qwen2.5-Coder-7B", 8192, "openai (template)")
        assert (await engine.status()).facts == facts


@pytest.mark.parametrize(
    ("answers", "way"),
    [
        ({"/v1/models": [models("q", maker="llamacpp")], "/infill": [Answer(body={"content": "1"})]}, "infill"),
        (
            {
                "/v1/models": [models("gemma", maker="llamacpp")],
                "/infill": [Answer(501, {"error": "Infill is not supported by this model"})],
                "/v1/completions": [IGNORES_SUFFIX],
            },
            "chat",
        ),
        ({"/v1/models": [models("q", maker="library")], "/v1/completions": [KNOWS_SUFFIX]}, "suffix"),
        ({"/v1/models": [models(QWEN)], "/v1/completions": [IGNORES_SUFFIX]}, "template"),
        (vllm(), "template"),
        (vllm(model="google/diffusiongemma-26B-A4B-it"), "chat"),
        (chatting(), "chat"),
    ],
)
async def test_the_way_to_fill_is_the_best_the_server_has(answers: dict[str, list[Answer]], way: str) -> None:
    async with serving(answers) as script, engine_at(script) as engine:
        await until(engine, "ready")
        assert engine.facts is not None
        assert engine.facts.family == f"openai ({way})"


async def test_a_fill_streams_its_drafts_and_is_done() -> None:
    answer = completion("a", " + ", "b", usage={"prompt_tokens": 30, "completion_tokens": 3})
    async with serving(vllm(answer)) as script, engine_at(script) as engine:
        drafts: list[Draft] = []
        done = await engine.submit(FILL, drafts.append, wait=True)
        assert (done.id, done.text, done.stats.stop) == ("a", "a + b", "end")
        assert [draft.text for draft in drafts] == ["a", "a + ", "a + b"]
        assert all(draft.settled == len(draft.text) for draft in drafts)
        assert (done.stats.prompt_tokens, done.stats.tokens) == (30, 3)
        body = script.at("/v1/completions")[-1].body
        assert body["prompt"] == f"<|fim_prefix|>{FILL.prefix}<|fim_suffix|>{FILL.suffix}<|fim_middle|>"
        assert (body["model"], body["temperature"], body["max_tokens"], body["stream"]) == (QWEN, 0, 128, True)


async def test_who_wants_no_drafts_hears_none() -> None:
    async with serving(vllm(completion("a"))) as script, engine_at(script) as engine:
        drafts: list[Draft] = []
        await engine.submit(replace(FILL, wants_drafts=False), drafts.append, wait=True)
        assert drafts == []


@pytest.mark.parametrize(("finish", "stop"), [("stop", "end"), ("length", "budget")])
async def test_why_an_answer_ended_is_told(finish: str, stop: str) -> None:
    async with serving(vllm(completion("a", finish=finish))) as script, engine_at(script) as engine:
        assert (await engine.submit(FILL, wait=True)).stats.stop == stop


async def test_a_rewrite_is_a_chat_and_its_text_the_block() -> None:
    answer = chat("Sure:\n```py", "thon\ny = ", "1\n``", "`\nDone.")
    async with serving(chatting(answer)) as script, engine_at(script) as engine:
        drafts: list[Draft] = []
        done = await engine.submit(REWRITE, drafts.append, wait=True)
        assert done.text == "y = 1"
        assert drafts[-1].text == "y = 1"
        assert "y = " in [draft.text for draft in drafts]
        body = script.at("/v1/chat/completions")[-1].body
        assert REWRITE.instruction in body["messages"][-1]["content"]
        assert (body["temperature"], "seed" in body) == (0, False)
        # Only vLLM and llama.cpp know this member; OpenAI's own servers refuse what they do not know.
        assert "chat_template_kwargs" not in body


async def test_a_seed_asks_for_another_text() -> None:
    async with serving(chatting(chat("```\ny\n```"))) as script, engine_at(script) as engine:
        await engine.submit(replace(REWRITE, seed=7), wait=True)
        body = script.at("/v1/chat/completions")[-1].body
        assert body["seed"] == 7
        assert body["temperature"] > 0


async def test_a_line_limit_closes_the_stream_as_soon_as_it_is_reached() -> None:
    answer = replace(completion("a\n", "b\n", "never"), hold_before=2)
    async with serving(vllm(answer)) as script, engine_at(script) as engine:
        done = await engine.submit(replace(FILL, max_lines=1), wait=True)
        assert (done.text, done.stats.stop) == ("a", "lines")
        await script.holding.wait()
        await script.hung_up.wait()


async def test_at_the_deadline_the_text_so_far_is_the_answer() -> None:
    answer = replace(completion("a + ", "never"), hold_before=1)
    async with serving(vllm(answer)) as script, engine_at(script) as engine:
        done = await engine.submit(replace(FILL, deadline_ms=200), wait=True)
        assert (done.text, done.stats.stop) == ("a + ", "deadline")
        await script.hung_up.wait()


async def test_cancelling_closes_the_stream_at_once() -> None:
    answer = replace(completion("a", "never"), hold_before=1)
    async with serving(vllm(answer)) as script, engine_at(script) as engine:
        job = asyncio.create_task(engine.submit(FILL, wait=True))
        await script.holding.wait()
        job.cancel()
        await script.hung_up.wait()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert (await engine.status()).jobs_cancelled == 1
        assert engine.state == "ready"


async def test_holes_are_filled_one_after_another_each_seeing_the_ones_before() -> None:
    request = replace(FILL, prefix="a = ", suffix="\nend", further=(FurtherHole("\nb = "), FurtherHole("\nc = ")))
    async with serving(vllm(completion("1"), completion("2"), completion("3"))) as script, engine_at(script) as engine:
        drafts: list[Draft] = []
        done = await engine.submit(request, drafts.append, wait=True)
        assert [filled.text for filled in done.holes] == ["1", "2", "3"]
        assert [draft.hole for draft in drafts] == [0, 1, 2]
        first, last = (script.at("/v1/completions")[number].body["prompt"] for number in (1, -1))
        assert first.startswith("<|fim_prefix|>a = <|fim_suffix|>\nb = ...\nc = ...\nend")
        assert last.startswith("<|fim_prefix|>a = 1\nb = 2\nc = <|fim_suffix|>\nend")


async def test_what_cannot_be_promised_is_refused() -> None:
    async with serving(vllm(completion("1"))) as script, engine_at(script) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.submit(replace(FILL, constraints=Constraints(must_parse=True)), wait=True)
        assert caught.value.kind == "bad_request"


async def test_who_waits_has_a_lost_answer_asked_again() -> None:
    cut = replace(completion("half"), cut=True, events=[{"choices": [{"text": "half"}]}])
    quiet = Answer(events=[{"choices": [{"text": "half"}]}])
    busy = Answer(503, headers=(("Retry-After", "0"),))
    for fault in (cut, quiet, busy):
        async with serving(vllm(fault, fault, completion("whole"))) as script, engine_at(script) as engine:
            assert (await engine.submit(FILL, wait=True)).text == "whole"


async def test_who_types_is_told_at_once_and_the_server_is_looked_for() -> None:
    cut = Answer(events=[{"choices": [{"text": "half"}]}], cut=True)
    answers = vllm(completion("whole"), cut, cut, REFUSES_SUFFIX, completion("whole"))
    async with serving(answers) as script, engine_at(script) as engine:
        assert (await engine.submit(FILL, wait=True)).text == "whole"
        with pytest.raises(EngineError) as caught:
            await engine.submit(FILL)
        assert caught.value.kind == "unreachable"
        assert (await engine.submit(FILL, wait=True)).text == "whole"
        assert len(script.at("/v1/models")) == 2


async def test_a_connection_that_was_only_old_is_no_loss() -> None:
    cut = Answer(events=[], cut=True)
    async with serving(vllm(cut, completion("whole"))) as script, engine_at(script) as engine:
        await until(engine, "ready")
        assert (await engine.submit(FILL)).text == "whole"
        assert engine.state == "ready"


async def test_one_that_greets_and_fails_every_request_has_failed_and_is_left_alone_for_a_while() -> None:
    async with serving(vllm(Answer(401))) as script, engine_at(script) as engine:
        states: list[str] = []
        await until(engine, "ready")
        engine.on_state(lambda state, _: states.append(state))
        for _ in range(3):
            with pytest.raises(EngineError) as caught:
                await engine.submit(FILL, wait=True)
            assert caught.value.kind == "bad_token"
            await asyncio.sleep(0.05)
        assert states == ["failed"]
        assert len(script.at("/v1/models")) == 1


@pytest.mark.parametrize("status", [401, 429, 503])
async def test_what_a_server_cannot_say_now_is_not_taken_for_what_it_cannot_do(status: int) -> None:
    answers = {"/v1/models": [models(QWEN)], "/v1/completions": [Answer(status), REFUSES_SUFFIX]}
    async with serving(answers) as script, engine_at(script) as engine:
        await until(engine, "failed")
        engine.start()
        await until(engine, "ready")
        assert engine.facts is not None
        assert engine.facts.family == "openai (template)"


async def test_a_busy_server_is_not_a_lost_one() -> None:
    async with serving(vllm(Answer(429))) as script, engine_at(script) as engine:
        await until(engine, "ready")
        with pytest.raises(EngineError) as caught:
            await engine.submit(FILL)
        assert (caught.value.kind, engine.state) == ("overloaded", "ready")


async def test_a_silent_server_is_given_up() -> None:
    answer = replace(completion("a", "never"), hold_before=0)
    async with serving(vllm(answer)) as script, engine_at(script, timeout_s=0.3) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.submit(FILL, wait=True)
        assert caught.value.kind == "timed_out"
        await script.hung_up.wait()


async def test_nonsense_in_a_stream_is_a_failure() -> None:
    for event in ("no json", "[1]", '{"error": {"message": "boom", "code": 500}}'):
        async with serving(vllm(Answer(events=[event]))) as script, engine_at(script) as engine:
            await until(engine, "ready")
            with pytest.raises(EngineError) as caught:
                await engine.submit(FILL)
            assert caught.value.kind in ("bad_reply", "unreachable")
            assert "boom" not in str(caught.value)


async def test_a_prompt_that_is_too_long_says_so() -> None:
    answer = Answer(400, {"error": {"type": "exceed_context_size_error"}})
    async with serving(vllm(answer)) as script, engine_at(script) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.submit(FILL, wait=True)
        assert (caught.value.kind, engine.state) == ("window_exceeded", "ready")


async def test_nobody_there_is_a_failure_with_a_remedy_and_is_tried_again() -> None:
    async with serving(vllm(completion("a"))) as script:
        port = script.port
    async with engine_at(Script({}, port=port)) as engine:
        await until(engine, "failed")
        assert engine.failure is not None
        assert engine.failure.kind == "unreachable"
        assert engine.failure.remedy
        with pytest.raises(EngineError):
            await engine.submit(FILL, wait=True)


@pytest.mark.parametrize(
    ("listed", "model", "kind"),
    [
        (Answer(401), "", "bad_token"),
        (Answer(200, {"hello": "world"}), "", "bad_reply"),
        (Answer(200, raw=b"<html>"), "", "bad_reply"),
        (models("other"), "mine", "model_missing"),
        (models(), "", "model_missing"),
        (Answer(307, headers=(("Location", "http://elsewhere.example.org/"),)), "", "bad_reply"),
    ],
)
async def test_a_server_that_cannot_be_used_says_why(listed: Answer, model: str, kind: str) -> None:
    async with serving({"/v1/models": [listed]}) as script, engine_at(script, model=model) as engine:
        await until(engine, "failed")
        assert engine.failure is not None
        assert engine.failure.kind == kind


@pytest.mark.parametrize("wanted", ["org/mine:7b", "mine", "mine:7b", "org/mine"])
async def test_a_model_is_found_by_a_part_of_its_name(wanted: str) -> None:
    answers = {"/v1/models": [models("first", "org/mine:7b")], "/v1/completions": [KNOWS_SUFFIX]}
    async with serving(answers) as script, engine_at(script, model=wanted) as engine:
        await until(engine, "ready")
        assert engine.facts is not None
        assert engine.facts.model == "mine:7b"


async def test_the_token_goes_along_and_a_new_one_is_read_when_the_old_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    file.chmod(0o600)
    answers = vllm(completion("a"), Answer(401), REFUSES_SUFFIX, completion("a"))
    async with serving(answers) as script, engine_at(script, token_file=str(file)) as engine:
        await engine.submit(FILL, wait=True)
        assert script.asked[0].headers["authorization"] == "Bearer old"
        file.write_text("new")
        with pytest.raises(EngineError) as caught:
            await engine.submit(FILL)
        assert caught.value.kind == "bad_token"
        await engine.submit(FILL, wait=True)
        assert script.asked[-1].headers["authorization"] == "Bearer new"


async def test_no_proxy_stands_between_this_machine_and_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with serving(vllm()) as script, engine_at(script) as engine:
        await until(engine, "ready")


async def test_closing_ends_what_runs() -> None:
    answer = replace(completion("a", "never"), hold_before=1)
    async with serving(vllm(answer)) as script, engine_at(script) as engine:
        job = asyncio.create_task(engine.submit(FILL, wait=True))
        await script.holding.wait()
        await engine.close()
        with pytest.raises(EngineGone):
            await job
        assert engine.state == "off"
        await script.hung_up.wait()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
async def test_only_a_certificate_that_is_trusted_here_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=here"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run(["openssl", *made.split(), *files], check=True, capture_output=True)
    certificate = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    async with serving(vllm(completion("a")), certificate) as script:
        async with engine_at(script) as engine:
            await until(engine, "failed")
            assert engine.failure is not None
            assert engine.failure.kind == "unsafe_address"
            assert script.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
        async with engine_at(script) as engine:
            assert (await engine.submit(FILL, wait=True)).text == "a"
