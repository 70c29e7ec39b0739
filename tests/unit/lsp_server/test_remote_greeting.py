"""A server that is greeted before it can serve, and one that serves other models: what is said, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill
from lsp_server.engine_client import Patience
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.dialect import Dialect
from lsp_server.remote.factory import dialect_of
from lsp_server.remote.openai import NAMES_CHARS, OpenAI
from lsp_server.remote.remote_engine import RemoteEngine
from tests.fakes.openai_server import Answer, Script, completion, models, serving

pytestmark = pytest.mark.asyncio

PATIENCE_S = 20.0
QWEN = "Qwen/Qwen2.5-Coder-7B"
FILL = Fill("a", "python", "def add(a, b):\n    return ", "\n")
REFUSES_SUFFIX = Answer(400, {"error": {"message": "suffix is not currently supported"}})
LOADING = Answer(503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})


@asynccontextmanager
async def engine_at(
    script: Script, *, dialect: Dialect | None = None, model: str = "", load_s: float = 60.0
) -> AsyncIterator[RemoteEngine]:
    patience = Patience(first_retry_s=0.01, longest_retry_s=0.05, load_s=load_s, loading_retry_s=0.02)
    engine = RemoteEngine(EngineChoice(script.url, model=model), dialect or OpenAI(), patience=patience)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield engine
    finally:
        await engine.close()


@pytest.mark.parametrize("dialect", [OpenAI(), dialect_of("auto")])
@pytest.mark.parametrize(
    "answers",
    [
        {"/v1/models": [LOADING, LOADING, models(QWEN)], "/v1/completions": [REFUSES_SUFFIX, completion("a")]},
        {"/v1/models": [models(QWEN)], "/v1/completions": [LOADING, LOADING, REFUSES_SUFFIX, completion("a")]},
        {
            "/v1/models": [models("q", maker="llamacpp")],
            "/infill": [LOADING, Answer(body={"content": "1"}), completion("a")],
            "/v1/completions": [REFUSES_SUFFIX],
        },
    ],
)
async def test_a_server_that_loads_its_model_is_on_its_way_and_waited_for(
    answers: dict[str, list[Answer]], dialect: Dialect
) -> None:
    answers = {path: list(each) for path, each in answers.items()}
    if not isinstance(dialect, OpenAI):
        # llama.cpp says so at every path.
        answers["/v1/facts"] = [LOADING, Answer(404)]
    async with serving(answers) as script, engine_at(script, dialect=dialect) as engine:
        states: list[tuple[str, str]] = []
        engine.on_state(lambda *news: states.append(news))
        engine.start()
        with pytest.raises(EngineError) as caught:
            await engine.submit(FILL)
        assert caught.value.kind == "loading"
        await engine.submit(FILL, wait=True)
        host = f"127.0.0.1:{script.port}"
        assert states == [("loading", f"{host} is loading its model"), ("ready", "ready")]


async def test_one_that_loads_again_is_waited_for_again() -> None:
    answers = {
        "/v1/models": [models(QWEN)],
        "/v1/completions": [REFUSES_SUFFIX, completion("a"), LOADING, LOADING, REFUSES_SUFFIX, completion("b")],
    }
    async with serving(answers) as script, engine_at(script) as engine:
        assert (await engine.submit(FILL, wait=True)).text == "a"
        assert (await engine.submit(FILL, wait=True)).text == "b"
        assert engine.state == "ready"


async def test_one_that_never_ends_loading_has_failed() -> None:
    async with serving({"/v1/models": [LOADING]}) as script, engine_at(script, load_s=0.05) as engine:
        with pytest.raises(EngineError, match="does not finish loading") as caught:
            await engine.submit(FILL, wait=True)
        assert (caught.value.kind, engine.state) == ("timed_out", "failed")


async def test_pauses_grow_also_behind_an_answer() -> None:
    counts: list[int] = []
    enough = asyncio.Event()

    class Counting(Patience):
        def pause(self, failures: int, kind: str) -> float:
            counts.append(failures)
            if len(counts) >= 4:
                enough.set()
            return 0.001

    cut = Answer(events=[{"choices": [{"text": "half"}]}], cut=True)
    answers = {
        "/v1/models": [models(QWEN), Answer(500)],
        "/v1/completions": [REFUSES_SUFFIX, completion("a"), cut],
    }
    async with serving(answers) as script, asyncio.timeout(PATIENCE_S):
        engine = RemoteEngine(EngineChoice(script.url), OpenAI(), patience=Counting())
        await engine.submit(FILL, wait=True)
        with pytest.raises(EngineError):
            await engine.submit(FILL)
        await enough.wait()
        await engine.close()
    assert counts[:4] == [1, 2, 3, 4]


async def test_names_to_choose_from_are_whole() -> None:
    file = "qwen2.5-coder-0.5b-instruct-with-a-patch-for-gaps-q8_0-from-a-long-shelf.gguf"
    listed = models(f"/srv/models/of/everybody/{file}", "org/short", *(f"model-{number:040}" for number in range(30)))
    async with serving({"/v1/models": [listed]}) as script, engine_at(script, model="mine") as engine:
        with pytest.raises(EngineError):
            await engine.ready()
        assert engine.failure is not None
        names = engine.failure.remedy.partition(": ")[2].partition(" and ")[0].split(", ")
        assert names[:2] == [file, "org/short"]
        assert set(names[2:]) <= {f"model-{number:040}" for number in range(30)}
        assert engine.failure.remedy.endswith(f" and {32 - len(names)} more")
        assert len(engine.failure.remedy) < NAMES_CHARS + 60
