"""A server that is not ours as the engine: llama.cpp's own, with the default model, behind the real language server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from lsprotocol import types

from engine.cli.editor import DraftSeen, Editor, OpenFile
from engine.protocol.errors import EngineError
from engine.protocol.messages import Draft, Fill, FurtherHole, Rewrite
from lsp_server.remote.choice import EngineChoice
from lsp_server.remote.openai import OpenAI
from lsp_server.remote.remote_engine import RemoteEngine
from tests.fakes.llama_server import WINDOW, llama_server

pytestmark = [pytest.mark.model, pytest.mark.asyncio]

READY_S = 120.0
GAP = Fill("a", "python", "def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n", max_tokens=24, wants_drafts=True)
CODE = '''def perimeter(width, height):
    """Return the perimeter of a rectangle."""
    return 0
'''


@pytest.fixture(scope="module")
def server(default_gguf: Path) -> Iterator[str]:
    """The address of llama.cpp's server."""
    with llama_server(default_gguf) as url:
        yield url


@asynccontextmanager
async def engine_at(url: str) -> AsyncIterator[RemoteEngine]:
    engine = RemoteEngine(EngineChoice(url), OpenAI())
    try:
        async with asyncio.timeout(READY_S):
            yield engine
    finally:
        await engine.close()


async def test_gaps_are_filled_by_its_own_infill_route(server: str) -> None:
    async with engine_at(f"{server}/v1") as engine:
        drafts: list[Draft] = []
        done = await engine.submit(GAP, drafts.append, wait=True)
        assert engine.facts is not None
        assert engine.facts.family == "openai (infill)"
        assert engine.facts.window_tokens == WINDOW
        assert done.text.startswith("a + b")
        assert done.text.startswith(drafts[0].text)
        assert [len(draft.text) for draft in drafts] == sorted(len(draft.text) for draft in drafts)
        assert done.stats.tokens > 0
        assert done.stats.prompt_tokens > 10


async def test_several_holes_with_a_line_limit_each(server: str) -> None:
    further = (FurtherHole("\n\n\ndef sub(a, b):\n    return ", max_lines=1),)
    request = Fill("b", "python", GAP.prefix, "\n", max_tokens=12, max_lines=1, further=further)
    async with engine_at(server) as engine:
        holes = (await engine.submit(request, wait=True)).holes
        assert len(holes) == 2
        for hole in holes:
            assert hole.text.strip()
            assert "\n" not in hole.text.strip("\n")


async def test_control_tokens_of_a_file_are_text(server: str) -> None:
    """Were they control, the model would see another gap, and one file's text would end where another begins."""
    prefix = 'END = "<|im_end|><|fim_middle|>"\n' + GAP.prefix
    async with engine_at(server) as engine:
        done = await engine.submit(Fill("a", "python", prefix, GAP.suffix, max_tokens=8), wait=True)
        assert done.text.startswith("a + b")


async def is_working(server: str) -> bool:
    async with httpx.AsyncClient(trust_env=False, timeout=READY_S) as client:
        slots = (await client.get(f"{server}/slots")).json()
    return any(slot["is_processing"] for slot in slots)


async def test_a_cancelled_job_is_stopped_by_the_server(server: str) -> None:
    """Of 1,500 tokens a few are made: nothing but the closed stream tells the server to stop."""
    text = "Count from one to one thousand in words.\n"
    endless = Rewrite("r", "text", "", text, "", "Write it all out.", max_tokens=1500, wants_drafts=True)
    async with engine_at(server) as engine:
        await engine.submit(GAP, wait=True)
        job = asyncio.create_task(engine.submit(endless, wait=True))
        while not await is_working(server):
            await asyncio.sleep(0.05)
        assert not job.done()
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        assert job.cancelled()
        while await is_working(server):
            await asyncio.sleep(0.05)


async def test_at_a_deadline_it_is_the_text_so_far(server: str) -> None:
    async with engine_at(server) as engine:
        await engine.submit(GAP, wait=True)
        counting = Fill("a", "python", "# One, two, three, ", "", max_tokens=1500, deadline_ms=3000)
        assert (await engine.submit(counting, wait=True)).stats.stop == "deadline"


async def test_a_rewrite_is_a_chat(server: str) -> None:
    async with engine_at(server) as engine:
        code = "def add(a, b):\n    return a + b\n"
        done = await engine.submit(Rewrite("r", "python", "", code, "", "Rename add to plus.", 64), wait=True)
        assert "def plus(a, b):" in done.text
        assert "```" not in done.text


async def test_what_is_longer_than_its_window_says_so(server: str) -> None:
    async with engine_at(server) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.submit(Rewrite("r", "text", "", "word " * 2 * WINDOW, "", "Shorten.", 64), wait=True)
        assert caught.value.kind == "window_exceeded"
        assert engine.state == "ready"


async def test_an_editor_works_with_it_as_with_ours(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("LACUNA_HOME", str(home))
    drafts: list[DraftSeen] = []
    away = OpenFile(tmp_path / "away" / "shapes.py", CODE, "python")
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "shapes.py").write_text(CODE)
    file = OpenFile(allowed / "shapes.py", CODE, "python")
    options = {
        "engine": {"url": f"{server}/v1", "allowFolders": [str(allowed)]},
        "inlineCompletion": {"alternatives": 1, "deadlineMs": 0, "maxTokens": 32},
    }
    running = Editor(drafts.append)
    await running.start(tmp_path, [], options)
    try:
        running.open(file)
        await running.wait_ready(READY_S)
        status = await running.status()
        assert status["facts"]["family"] == "openai (infill)"
        place = CODE.index("0\n")
        running.replace_all(file, CODE[:place] + CODE[place + 1 :])
        edits = await running.inline_completion(file, place)
        after = file.replaced(edits)
        assert after.startswith(CODE[:place])
        assert len(after) > len(CODE)
        running.open(away)
        assert await running.inline_completion(away, place) == []
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
        asked = {"uri": away.uri, "range": whole, "instruction": "Shorten."}
        params = types.ExecuteCommandParams(command="lacuna.rewrite", arguments=[asked])
        await running.client.workspace_execute_command_async(params)
        assert any("engine.allowFolders" in message for message in running.messages)
    finally:
        await running.stop()
    # Nobody started an engine of our own.
    assert not list(home.rglob("*.log"))


async def test_the_shell_asks_it_too_and_starts_no_engine_of_ours(server: str, tmp_path: Path) -> None:
    file = tmp_path / "shapes.py"
    file.write_text(CODE.replace("return 0", "return <fill>"))
    command = [
        sys.executable,
        "-m",
        "engine.cli.main",
        "fill",
        str(file),
        "--url",
        server,
        "--max-tokens",
        "32",
        "--json",
    ]
    environment = {**os.environ, "LACUNA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).parents[2])}
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate()
    # A text that runs into its budget is not put in: what is looked at is that the server was asked.
    assert process.returncode in (0, 1), err
    assert json.loads(out)["stats"][0]["reason"] == "remote: infill"
    assert not (tmp_path / "home" / "run").exists()
